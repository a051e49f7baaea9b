"""Questions as facts: typed values, run ids and weights, without any text for people."""
