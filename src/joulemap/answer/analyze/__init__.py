"""One run taken apart."""
