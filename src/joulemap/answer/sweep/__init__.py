"""Sweep of energy, latency and throughput over batch sizes."""
