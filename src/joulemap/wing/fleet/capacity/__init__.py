"""How many of which device serve a demand: queues of batches, their closed forms, and fleets that keep a promise."""
