"""Uncertainty of predictions for served models: half-widths of 80 % intervals by vendor and engine."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog.sheet import read_records
from joulemap.domain import SCOPE
from joulemap.physics import ErrorGroup
from joulemap.system import frozen

if TYPE_CHECKING:
    from joulemap.wing.llm.row import Prediction

TABLE: Final = "serving_scale"
"""Table of the database with the scales."""

FILE: Final = Path(__file__).parent / "data" / "error_scale.csv"

SERVED_TIME: Final = "time"
"""Error scale of all times and rates of served models."""

SERVED_POWER: Final = "power"
"""Error scale of the powers of served models."""

PROMPT_TIME: Final = "time_to_first_token_s"
"""Quantity that measures the time of a prompt."""

SERVED_TIMES: Final = (
    PROMPT_TIME, "inter_token_latency_s", "request_latency_s", "output_tokens_per_s", "total_tokens_per_s",
)  # fmt: skip
"""Times and rates of served models, whose errors have one scale."""

SERVED_ENERGIES: Final = ("energy_per_request_j", "energy_per_output_token_j")
"""Energies of served models, whose errors combine those of a time and of the power."""

NEW_SERVER: Final = 0.1
"""Additional half-width of the times of an unmeasured server whose engine was measured on its chip.

Source: with the source of such rows held out, covering 80 % of their times requires 0.1 to 0.15.
"""

NEW_METER: Final = 0.15
"""Additional half-width of the powers of an unmeasured server.

Source: 265 powers of 39 boards and models on NVIDIA boards, of nine sources that set no number: with it, 79 % are
covered, with 0.1 77 %, and without 75 %. With a source of the fit held out, 80 % are covered without it.
"""

NEW_CHIP: Final = 0.15
"""Additional half-width of the times of a server whose engine was measured on other chips of the vendor only.

Source: judged. With a board held out, covering 80 % of its times requires 0.05 to 0.1, but most such rows share their
source with other boards.
"""

NEW_ENGINE: Final = 0.25
"""Additional half-width of the times of a server whose engine was not measured on any chip of the vendor.

Source: with the source of such rows held out, covering 80 % of their times requires 0.2 to 0.25; with an engine held
out, 0 to 0.25.
"""

NEW_BACKEND: Final = 0.9
"""Additional half-width of the time of prompts on a GPU with several backends if the engine's backend is not named.

Source: 524 prompts with llama.cpp of 2026 on four boards (R9700, Ryzen AI Max+ 395, Arc Pro B60 and B70), weighted
equally by board, model and backend: covering 80 % requires 1.0 in all. Vulkan takes twice as long as ROCm with
quantized weights; builds of ROCm differ eightfold with 16-bit weights.
"""

SEVERAL_BACKENDS: Final[Mapping[str, tuple[str, ...]]] = {"llamacpp": ("AMD", "Intel")}
"""Engine -> vendors whose GPUs run it on one of several backends. NVIDIA's almost always run CUDA, Apple's Metal."""

NEW_LOAD: Final = 0.3
"""Half-width that admission adds to a first token under load: the time at which a server admits a request is unknown.

Source: judged; with InferenceX held out, the only source, 0.25 covers 80 % of its first tokens, although some waited
nine times as long as predicted.
"""

AT_ONCE: Final = 2.1
"""Half-width that users without a pause add to a mean first token: their requests can arrive together, which times of
requests that arrive evenly leave out.

Derived: 152 such times err by 1.35 (mean |ln error|) without requests together, and by 0.71 with a share of 0.7 that
arrive together, where a half-width of 1.1 covers 80 % of them: 1.1 x 1.35 / 0.71.
"""

SERVED_OPPOSITION: Final = 0.4
"""Correlation of the errors of a served model's time and power, with its sign reversed. Opposite errors cancel in
energy.

Derived: in nine sources that measured both, the correlation is -0.90 to +0.34, in the median -0.51. A pass that
takes longer than predicted does the same work, at less power. With a source held out, this covers 77 to 98 % of the
energies of five sources with 30 rows, and 58 % of a sixth (llama.cpp on an APU)."""


def find_unnamed_backend(architecture: str, vendor: str, engine: str) -> float:
    """Return the additional half-width of prompts of an engine without a named backend; 0 for most engines and chips.

    `engine` is a name with its backend and release: `llamacpp@vulkan 2026`.
    """
    vendors = SEVERAL_BACKENDS.get(engine.partition(" ")[0], ())
    return NEW_BACKEND if architecture == "gpu" and vendor in vendors else 0.0


def name_bare_engine(engine: str) -> str:
    """Return the name of an engine without its backend and release: `llamacpp` of `llamacpp@vulkan 2026`."""
    return engine.partition(" ")[0].partition("@")[0]


def join_served_energy(time: float, power: float) -> float:
    """Return the half-width of the energy of a served model from the half-widths of its time and power."""
    return math.sqrt(time**2 + power**2 - 2.0 * SERVED_OPPOSITION * time * power)


def name_served_scale(quantity: str) -> str:
    """Return the error scale of a measured quantity of a served model; empty for an energy and any other quantity."""
    return SERVED_TIME if quantity in SERVED_TIMES else SERVED_POWER if quantity == "power_w" else ""


@frozen(kw_only=True)
class ServingScale:
    """Error scale of one group of served measurements. An empty text in a field means that the group has all its
    values.
    """

    quantity: str
    """`SERVED_TIME` or `SERVED_POWER`."""
    level: int = attrs.field(validator=attrs.validators.ge(0))
    """Level of the group; of all groups that contain a prediction, the one with the highest level applies."""
    vendor: str
    engine: str
    """Name of the engine, without its release."""
    half_width: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Half-width of the 80 % interval of ln(measured / predicted) of the measured servers."""
    group_count: int = attrs.field(validator=attrs.validators.ge(0))
    """Number of (source, board) pairs."""
    row_count: int = attrs.field(validator=attrs.validators.ge(0))
    chips: str = ""
    """Measured chips of the finest groups, separated by spaces; empty for other groups."""

    def widen(self, hardware: str) -> float:
        """Return the half-width for a server that nobody measured, with this chip."""
        if self.quantity == SERVED_POWER:
            return math.hypot(self.half_width, NEW_METER)
        is_known = hardware in self.chips.split()
        return math.hypot(self.half_width, NEW_SERVER if is_known else NEW_CHIP if self.engine else NEW_ENGINE)


COLUMNS: Final = tuple(field.name for field in attrs.fields(ServingScale))


@frozen(kw_only=True)
class ServedDoubt:
    """Error scales from which the intervals of served models are computed."""

    scales: tuple[ServingScale, ...]

    def find(self, quantity: str, *, vendor: str, engine: str) -> ServingScale | None:
        """Return the finest group of measurements of `SERVED_TIME` or `SERVED_POWER` with a vendor and an engine.

        None without measurements. `engine` is a name, with or without a backend and a release.
        """
        name = name_bare_engine(engine)
        scales = (one for one in self.scales if one.quantity == quantity)
        alike = [one for one in scales if one.vendor in ("", vendor) and one.engine in ("", name)]
        return max(alike, key=lambda one: one.level, default=None)

    def half_width(
        self,
        quantity: str,
        *,
        vendor: str,
        engine: str,
        hardware: str,
        scope: str = "",
        architecture: str = "",
        thin: float = 0.0,
    ) -> float | None:
        """Return the half-width of a prediction for a served model; None for a quantity without an error scale.

        `engine` is a name with its backend and release, `hardware` an id without its operating point, `architecture`
        its class. The half-width of an energy is combined from those of a time and of the power. The SQL macro
        `serving_half_width` computes the same.
        """
        like = {"vendor": vendor, "engine": engine}
        is_prompt = quantity == PROMPT_TIME or (scope in SCOPE and SCOPE[scope].is_prompt)
        backend = find_unnamed_backend(architecture, vendor, engine) if is_prompt else 0.0
        if quantity in SERVED_ENERGIES:
            time, power = (self.find(one, **like) for one in (SERVED_TIME, SERVED_POWER))
            if time is None or power is None:
                return None
            return join_served_energy(math.hypot(time.widen(hardware), backend, thin), power.widen(hardware))
        scale = self.find(name_served_scale(quantity), **like)
        if scale is None:
            return None
        is_loaded = quantity == PROMPT_TIME and scope in SCOPE and SCOPE[scope].is_loaded
        if scale.quantity == SERVED_POWER:
            return scale.widen(hardware)
        return math.hypot(scale.widen(hardware), backend, thin, NEW_LOAD if is_loaded else 0.0)

    def find_half_widths(
        self, one: Prediction, *, vendor: str, hardware: str, architecture: str, scope: str
    ) -> Mapping[str, float | None]:
        """Return the half-width of each predicted quantity of a served model, in the terms of `half_width`."""
        from joulemap.wing.llm.row import QUANTITIES  # its patterns of notes are compiled on import

        like = {"vendor": vendor, "engine": one.engine, "hardware": hardware, "architecture": architecture}
        thin = {PROMPT_TIME: one.prompt_half_width}
        return {
            name: self.half_width(name, **like, scope=scope, thin=thin.get(name, one.token_half_width))
            for name in QUANTITIES
            if getattr(one, name) is not None
        }


@cache
def load_served_doubt() -> ServedDoubt:
    """Return the built-in error scales of served models."""
    return ServedDoubt(scales=read_records(ServingScale, FILE))


def write_served_doubt(scales: Sequence[ServingScale]) -> None:
    """Replace the built-in error scales of served models."""
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(attrs.asdict(one) | {"half_width": f"{one.half_width:.4g}"} for one in scales)


def _list_scales() -> Sequence[ServingScale]:
    return load_served_doubt().scales


GROUP: Final = ErrorGroup(tables={TABLE: _list_scales}, fit="joulemap.wing.llm.error_fit:refit")
