"""Capacity of deployments: devices that hold a model, what a batch costs on them, and what they do under a load."""
