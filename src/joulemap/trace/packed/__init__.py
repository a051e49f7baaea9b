"""Weights that a checkpoint stores narrow: how they lie, what multiplies by them, and what a configuration says."""
