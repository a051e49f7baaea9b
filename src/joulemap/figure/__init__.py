"""Figures: an answer's rows in a specification of Vega-Lite, and how they are drawn."""
