"""Measurements on this machine: its hardware and state, the latency of a model, and the energy it uses."""
