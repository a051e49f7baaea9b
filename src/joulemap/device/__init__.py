"""The machine that joulemap runs on: what it is, what state it is in, how long a model takes, what energy it counts."""
