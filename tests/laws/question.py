"""One side of a comparison: a model on a chip with settings, and the command that asks for it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.physics.record.workload import Workload
from joulemap.system.record import frozen
from laws.network import Network

ROOT: Final = Path(__file__).parents[2]

FOLDER: Final = Path("build/laws")
"""Folder below the root of the files of networks that break a law."""


@frozen(kw_only=True)
class Question:
    """Model on a chip at one configuration, or words of a command."""

    model: str | Network = ""
    hardware: str = ""
    precision: str = "fp32"
    runtime: str = "fused"
    batch: int = 1
    changes: tuple[tuple[str, float], ...] = ()
    words: tuple[str, ...] = ()
    """Words of the command, if it is none of compare."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name if isinstance(self.model, Network) else self.model

    def workload(self) -> str | Workload:
        """Return what `joulemap.predict` takes as the model."""
        return self.model.trace(self.batch) if isinstance(self.model, Network) else self.model

    def command(self) -> str:
        """Return the command that asks it; the file of a random network is written for it."""
        if self.words:
            return shlex.join(("joulemap", *self.words))
        model = self.model
        if isinstance(model, Network):
            model = f"{FOLDER / model.save(ROOT / FOLDER, self.batch).name}:net"
        words = ["compare", model, self.hardware, "--precision", self.precision, "--runtime", self.runtime]
        words += ["--batch", str(self.batch)] if self.batch > 1 and isinstance(self.model, str) else []
        words += [word for name, value in self.changes for word in ("--set", f"{name}={value:.6g}")]
        return shlex.join(("joulemap", *words))

    def replace(self, **fields: Any) -> Question:
        """Return the question with other fields."""
        return attrs.evolve(self, **fields)
