/*
record = "StoredView"
summary = "Public views of the database, whose columns are stable"
grain = "one row per view"
table = ["view_name", "column_count", "meaning.kept"]
order = ["view_name"]
[columns]
view_name = { heading = "view", type = "VARCHAR", meaning = "name of the view" }
column_count = { type = "BIGINT", meaning = "number of columns" }
meaning = { type = "VARCHAR", meaning = "content of a row" }
*/
SELECT view_name, column_count, comment AS meaning
FROM duckdb_views()
WHERE NOT internal AND schema_name = 'main' AND comment IS NOT NULL
ORDER BY view_name
