"""Answers as sketches: what `--plot` draws of each, made of the rows that its tables show."""
