"""Base utilities: files, errors, records, numbers, units, and conversion of rows for other libraries."""
