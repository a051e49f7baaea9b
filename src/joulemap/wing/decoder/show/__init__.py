"""English of passes of language models."""
