"""Makers of the data that ships."""
