"""Words for facts: the only English of an answer, and facts as data for programs."""
