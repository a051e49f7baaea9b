"""Questions about training."""
