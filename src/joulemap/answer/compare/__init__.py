"""Comparison of models and hardware: by figures, run, subgraph and model, and ranked by a metric."""
