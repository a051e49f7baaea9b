"""Why one run needs more than another."""
