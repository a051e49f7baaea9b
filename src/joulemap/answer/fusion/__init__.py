"""What fusing saves."""
