"""Saved programs: which of their nodes each operator of a workload comes from."""
