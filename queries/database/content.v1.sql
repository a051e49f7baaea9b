/*
record = "StoredTable"
summary = "Tables of the database"
grain = "one row per table"
[columns]
table_name = { type = "VARCHAR", meaning = "table" }
row_count = { type = "BIGINT", meaning = "rows, as the engine estimates them" }
column_count = { type = "BIGINT", meaning = "columns" }
meaning = { type = "VARCHAR", meaning = "content of a row" }
*/
SELECT table_name, estimated_size AS row_count, column_count, comment AS meaning
FROM duckdb_tables()
WHERE NOT internal
ORDER BY table_name
