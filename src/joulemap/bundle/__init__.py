"""Packed data that predictions need without a database: built-in workloads, and chips as their runs use them."""
