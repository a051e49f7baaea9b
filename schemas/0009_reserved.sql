-- This number is kept for another part of the schema.
SELECT 9 AS version;
