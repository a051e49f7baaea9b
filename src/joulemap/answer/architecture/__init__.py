"""The architecture classes side by side on one model."""
