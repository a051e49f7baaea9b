"""Workload x hardware x configuration to a run with its ledger: columns, traffic, kernels, classes, one pipeline."""
