"""Words for the facts of served language models."""
