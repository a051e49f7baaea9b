"""Answers on fleets: how many of each hardware serve a demand."""
