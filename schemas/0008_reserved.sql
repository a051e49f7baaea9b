-- This number is kept for another part of the schema.
SELECT 8 AS version;
