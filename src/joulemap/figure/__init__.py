"""Figures of answers: Vega-Lite specifications with their rows, and how they are drawn."""
