"""Savings of operator fusion."""
