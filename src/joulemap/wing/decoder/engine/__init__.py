"""Engines that run passes: their releases, and chips under them."""
