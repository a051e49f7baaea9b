"""Render documents as table, json, csv, markdown and html; SQL, and arithmetic that a query could do, are elsewhere."""
