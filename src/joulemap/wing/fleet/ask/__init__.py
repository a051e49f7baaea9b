"""Questions on fleets: how many of each chip serve a demand."""
