"""Decoder language models: their configurations, and passes as workloads."""
