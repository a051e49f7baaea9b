"""Number of devices that serve a demand: queues of batches, their closed forms, and the fewest that meet a target."""
