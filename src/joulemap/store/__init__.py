"""DuckDB storage: open, migrate, write and read databases. Only this package depends on the database engine."""
