"""Blocks of points: evaluation on any number of processes, and storage as the shards of a lake."""
