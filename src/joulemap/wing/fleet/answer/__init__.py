"""Fleets: how many of which hardware serve a demand."""
