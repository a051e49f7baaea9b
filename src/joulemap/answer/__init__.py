"""Questions: one module each, with its row types, the queries that fill them, its sentences and its document."""
