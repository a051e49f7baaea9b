"""Records as numpy columns: what formulas are written over and what the store writes in bulk.

A column is called what the record's field is called (a test keeps them equal).
"""
