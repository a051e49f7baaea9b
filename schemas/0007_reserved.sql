-- This number is kept for another part of the schema.
SELECT 7 AS version;
