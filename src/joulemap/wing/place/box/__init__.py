"""Placement on a box: costs of subgraphs on each device, the best placements, and their ledgers."""
