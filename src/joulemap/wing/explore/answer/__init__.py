"""Answers on the best design of a chip with varied numbers."""
