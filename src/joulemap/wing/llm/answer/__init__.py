"""Which accelerator serves a language model: what fits, how fast, at which energy and cost, and what bounds it."""
