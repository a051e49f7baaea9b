"""Answers of the core about pipelines at a frame rate."""
