"""Measurements on this machine: its hardware and state, and the latency and energy of a model."""
