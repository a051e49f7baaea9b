"""Blocks of points: evaluated where there is room, kept as the shards of a lake."""
