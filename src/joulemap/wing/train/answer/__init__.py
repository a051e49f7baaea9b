"""What a training step takes: time, energy and memory on so many devices, and what its samples cost."""
