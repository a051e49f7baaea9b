"""Facts of runs divided into parts: shares that sum to the run, and what a first line says of them."""

from __future__ import annotations
