"""What the library hands out: one record per row of a query, fields in the order of its columns.

A contract test keeps each record equal to its query's header.
"""
