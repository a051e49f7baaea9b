"""Capacity of deployments: devices that hold a model, costs of a batch, and service under a load."""
