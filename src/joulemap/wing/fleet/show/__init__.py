"""Words for fleets."""
