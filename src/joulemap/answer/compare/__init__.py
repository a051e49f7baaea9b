"""Comparison of models and hardware: whole runs, subgraphs, several models, and a ranking by a metric."""
