"""Changes of constants that would reverse which of two chips is better."""
