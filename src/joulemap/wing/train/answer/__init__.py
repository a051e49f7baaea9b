"""Training answer: time, energy and memory of a step by number of devices, and the cost of its samples."""
