"""Figures of answers: Vega-Lite specifications with their rows, and drawing them."""
