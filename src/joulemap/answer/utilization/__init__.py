"""Utilization of hardware by models, with causes and remedies."""
