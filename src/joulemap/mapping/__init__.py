"""Mechanisms that architectures share: columns of operators, tiling and waves, traffic by level, kernel time."""
