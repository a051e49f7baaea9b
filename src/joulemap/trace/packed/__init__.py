"""Weights that a checkpoint stores in few bits: their layout, their products, and their configuration."""
