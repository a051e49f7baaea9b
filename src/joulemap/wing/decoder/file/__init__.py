"""Model files that hold weights: headers are read, weights never."""
