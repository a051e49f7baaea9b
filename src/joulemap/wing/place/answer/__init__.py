"""Placement answer: the best placement, each device alone, and why a mixture of devices wins or loses."""
