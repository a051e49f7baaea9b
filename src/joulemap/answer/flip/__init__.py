"""Changes of constants that would make the other of two chips better."""
