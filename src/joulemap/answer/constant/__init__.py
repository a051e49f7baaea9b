"""Questions on how constants of chips move the results of runs."""
