"""DuckDB: open, migrate, write, read. The only room that knows the engine."""
