"""Commands that measure what an answer predicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import attrs

from joulemap.catalog.check import LANGUAGE, NETWORK, Check, CheckedRun, list_checks, list_lacking
from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import find_model_name
from joulemap.domain.operator.name import is_operator
from joulemap.domain.settings import Settings
from joulemap.physics.record.product import DEFAULT, MatmulPrecision, choose_setting
from joulemap.physics.record.weight import split_precision
from joulemap.plan.model_name import find_names
from joulemap.plan.selection import select_hardware

if TYPE_CHECKING:
    from joulemap.generated.explain import RunPair


CLASSIFICATION: Final = "classification"
"""Task of torchvision's models that take one tensor."""

ARGUMENT: Final = re.compile(r"(\w+)=([^,()]+)")


@attrs.frozen
class Checks:
    """Commands that measure the rows of an answer."""

    commands: tuple[Check, ...]
    missing: Mapping[str, Sequence[str]]
    """Hardware that no known benchmark tool measures -> settings that are the reason; empty if it has no tool."""

    @classmethod
    def join(cls, parts: Iterable[Checks]) -> Checks:
        """Return the commands of several parts of an answer, each once."""
        collected = tuple(parts)
        checks = tuple(dict.fromkeys(check for part in collected for check in part.commands))
        have = {check.hardware for check in checks}
        missing = {name: why for part in collected for name, why in part.missing.items() if name not in have}
        return cls(checks, missing)


def find_checks(runs: Sequence[tuple[str, str, CheckedRun]]) -> Checks:
    """Return the commands that measure runs.

    A run is a triple: displayed name of the chip, name of the chip in commands, and settings.
    """
    by_command: dict[tuple[str, str], Check] = {}
    lacking: dict[str, Sequence[str]] = {}
    for shown, name, run in runs:
        for entry, _ in select_hardware(Settings(hardware=(name,))).pairs:
            by_command |= {(shown, one.command): one for one in list_checks(entry, run, shown)}
            lacking[shown] = list_lacking(entry, run)
    have = {one.hardware for one in by_command.values()}
    return Checks(tuple(by_command.values()), {shown: why for shown, why in lacking.items() if shown not in have})


class CheckedRow(Protocol):
    """Row of an answer that describes one run; benchmark commands are made from it."""

    @property
    def hardware(self) -> str:
        """Name of the chip in the answer."""

    @property
    def precision(self) -> str:
        """Precision of the run, with the format of the weights."""

    @property
    def batch(self) -> int:
        """Batch size."""

    @property
    def runtime(self) -> str:
        """Runtime of the run, such as `eager`."""


class PairedRun(NamedTuple):
    """One of the two runs that an explanation compares; both have the same settings."""

    hardware: str
    precision: str
    batch: int
    runtime: str


def split_pair(total: RunPair) -> tuple[PairedRun, PairedRun]:
    """Return the two runs that an explanation compares."""
    first, second = (
        PairedRun(name, total.precision, total.batch, total.runtime) for name in (total.hardware_a, total.hardware_b)
    )
    return first, second


def check_runs(
    model: str,
    rows: Iterable[CheckedRow],
    *,
    spell: Callable[[str], str] = str,
    matmul_precision: MatmulPrecision = DEFAULT,
) -> Checks:
    """Return the commands that measure runs of a model; `spell` maps a displayed chip name to its name in commands.

    Each model of a name that joins several is measured alone.
    """
    rows = tuple(rows)
    names = find_names(model)
    if (parts := names.list_parts(model)) is not None:
        return Checks.join(check_runs(one, rows, spell=spell, matmul_precision=matmul_precision) for one in parts)
    if is_operator(model):
        return Checks((), {row.hardware: () for row in rows})
    models = load_models()
    entry = models.get(find_model_name(model, models))
    name, _, arguments = model.rpartition("(") if model.endswith(")") else (model, "", "")
    given = dict(ARGUMENT.findall(arguments))
    phase = names.find_phase(model)
    tokens = int(given.get("tokens", 1))
    runs = []
    for row in rows:
        precision, weights = split_precision(row.precision)
        run = CheckedRun(
            model=name,
            checkpoint=names.find_checkpoint(model),
            kind=LANGUAGE if phase else NETWORK,
            precision=precision,
            weights=weights,
            batch=row.batch,
            runtime=row.runtime,
            engine=given.get("engine", ""),
            phase=phase,
            prompt=tokens,
            cached=int(given.get("cached", 0)),
            devices=int(given.get("devices", 1)),
            pipeline_devices=int(given.get("pipeline_devices", 1)),
            expert_devices=int(given.get("expert_devices", 1)),
            data_devices=int(given.get("data_devices", 1)),
            cache=given.get("cache", ""),
            speculates=tokens > 1 and "logits" in given,
            reuses_prefixes=tokens > 1 and "cached" in given and "logits" not in given,
            shape=entry.input_shape if entry is not None and entry.task == CLASSIFICATION else (),
            matmul_precision=choose_setting(matmul_precision, precision),
        )
        runs.append((row.hardware, spell(row.hardware), run))
    return find_checks(runs)
