"""Comparison of accelerators that serve a language model: memory fit, speed, energy, cost and bottlenecks."""
