"""Answers that consist of several queries."""
