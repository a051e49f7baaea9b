"""A model over the devices of a box: what each takes for each subgraph, the best placements, and their ledgers."""
