"""A sweep over batches."""
