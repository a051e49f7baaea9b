"""Language models as they are served: engines, the time and energy of batches and of steady loads."""
