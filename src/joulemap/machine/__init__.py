"""The machine that joulemap runs on: what it is, what state it is in, what energy it counts."""
