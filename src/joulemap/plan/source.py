"""Results database: its path, its progress callbacks, and how long it is waited for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import attrs

from joulemap.store.connection import PATIENT, Patience, log
from joulemap.system.record import frozen

Talk = Callable[[str], None]
Progress = Callable[[int, int], None]
"""Callback with (done, to do) of runs, or of the steps of a longer question."""


@frozen(kw_only=True)
class Source:
    """Results database, created at the first write."""

    path: Path
    talk: Talk = log
    progress: Progress | None = None
    """Progress callback; not called if all runs are stored. If it raises, evaluation stops after complete runs."""
    patience: Patience = PATIENT

    def anchor(self) -> Source:
        """Return the source with an absolute path, which a change of the working directory does not affect."""
        with contextlib.suppress(OSError):  # the working directory may no longer exist
            return attrs.evolve(self, path=self.path.absolute())
        return self
