"""Render documents as table, json, csv, markdown and html; SQL and arithmetic do not belong here."""
