"""Names of single operators."""
