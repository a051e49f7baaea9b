"""Words and tables for training."""
