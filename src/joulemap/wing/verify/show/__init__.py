"""Words and tables of verifications."""
