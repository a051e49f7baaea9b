"""Weights that a checkpoint stores in few bits: their layout, their GEMMs, and their configuration."""
