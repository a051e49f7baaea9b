"""Clients of a language model server, by when their requests start."""

from __future__ import annotations

from typing import Final

CLIENTS: Final = ("steady", "together", "waves")
"""Clients that keep requests in flight: independent of each other; started together, as by a benchmark; started
together again whenever all have ended, as in batches.
"""
