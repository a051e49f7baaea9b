/*
record = "StoredTable"
summary = "Tables of the database"
grain = "one row per table"
table = ["table_name", "row_count.kept", "column_count", "meaning.kept"]
[columns]
table_name = { heading = "table", type = "VARCHAR", meaning = "name of the table" }
row_count = { type = "BIGINT", meaning = "number of rows, as estimated by the engine" }
column_count = { type = "BIGINT", meaning = "number of columns" }
meaning = { type = "VARCHAR", meaning = "content of a row" }
*/
SELECT table_name, estimated_size AS row_count, column_count, comment AS meaning
FROM duckdb_tables()
WHERE NOT internal
ORDER BY table_name
