"""Questions about pipelines."""
