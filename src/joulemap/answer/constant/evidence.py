"""Measurements behind the numbers that move a prediction, and the measurement that would narrow it most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.constant.variation import (
    DIGITS,
    ConstantAnswer,
    Varied,
    describe_constant,
    opening_variations,
    show_elasticity,
)
from joulemap.ask.turn import find_swings
from joulemap.domain.computed import described, make_table
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.metric import METRIC, VariedMetricName
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.physics.interval.error_scale import MOVING, SCALED, find_thinness
from joulemap.physics.record.constant import Constant
from joulemap.physics.record.quantity import Evidence
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware
from joulemap.plan.source import Source
from joulemap.plan.variation import Variation
from joulemap.show.present.cell import show_share
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

SHOWN: Final = 12
"""Default number of rows in the main table."""

KNOWN: Final = ("measured", "published")
"""Bases of numbers that a document or a measurement states."""

USUAL: Final = "bf16"
"""Precision of a question that names none, or the nearest one that the chip has."""

TITLE: Final = Template("numbers that move {metric.label} by a tenth or more")
SAID: Final = Template(
    "{known} of {count} numbers that move {noun} on {chip} by a tenth or more are measured or published; "
    "measuring {name} ({basis}) would narrow it most"
)
NONE: Final = Template("No number moves {noun} on {chip} by a tenth or more")
COLUMNS: Final = Template(
    "number word | *value | per percent elasticity | basis | rests on rests | share uncertainty_fraction"
)
SOURCES: Final = Template("number word | basis | source")
STEP: Final = Template("sensitivity {model} {chip} --metric {metric}[ --precision {precision}] {repeated}")
NOTES: Final = (
    "per percent: percent of the result per percent of the number, each number alone",
    "share: of the uncertainty, from the range of each number, as in `joulemap sensitivity`",
    "device time and launch time are left out where they are 1, because nothing was fitted; shares count them",
)


@frozen(kw_only=True)
class Evident(Varied):
    """Number that moves a result by a tenth or more, with the measurements behind it."""

    hardware: str = described("catalogue id, with @MODE for a power mode other than the default")
    elasticity: float = described("d ln metric / d ln number: percent per percent")
    sources: int | None = described("sources of the measurements that the number was fitted to; null for other numbers")
    boards: int | None = described("boards among these measurements")
    models: int | None = described("models among these measurements; single operators count as one")
    half_width: float = described("half-width that these measurements add to the interval of a served model's time")
    uncertainty_fraction: float | None = described("share of the result's variance from the ranges of all numbers")

    @property
    def rests(self) -> str:
        """Measurements behind the number in words, or where it comes from."""
        if self.sources is None or self.boards is None or self.models is None:
            return STATED.get(self.basis, "no measurement")
        return Evidence(sources=self.sources, boards=self.boards, models=self.models).describe()


STATED: Final = {"measured": "the chip itself", "published": "a document"}
"""Basis -> what a number rests on that was fitted to no measurements."""


@frozen(kw_only=True)
class EvidenceAnswer(ConstantAnswer):
    """Numbers that move a result of one chip by a tenth or more, and what each rests on."""

    rows: Table[Evident]
    """Numbers, largest share of the uncertainty first."""

    @property
    def known_count(self) -> int:
        """Number of rows that are measured or published."""
        return sum(row.basis in KNOWN for row in self.rows)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` numbers in the main table; machine formats contain all."""
        metric, rows = METRIC[self.metric], list(self.rows)[:limit]
        shown = self._lay(
            self.rows.with_rows(rows),
            COLUMNS(),
            value=lambda row: row.show(row.value, DIGITS),
            elasticity=lambda row: show_elasticity(row.elasticity),
            uncertainty_fraction=lambda row: show_share(row.uncertainty_fraction),
        ).out_of(len(self.rows), len(rows), "numbers", f"--limit {len(self.rows)}")
        texts = self._lay(self.rows, SOURCES())
        values = {"model": self.scope.model, "chip": self.scope.spell(self.scope.hardware[0]), "metric": self.metric}
        # the precision of the question, which the other command would not take
        precision = None if "--precision" in repeated else self.scope.precisions[0][0]
        return self._compose_facts(
            self.facts,
            (Section("", shown),),
            self.rows,
            title=attrs.evolve(title_runs(self.scope), about=TITLE(metric=metric)),
            answer=self._say(),
            details=(Section("sources", texts),),
            notes=NOTES,
            steps=[STEP.words(repeated=repeated, precision=precision, **values)],
        )

    def _say(self) -> str:
        noun, chip = METRIC[self.metric].label, self._mark(self.scope.hardware[0])
        if not self.rows:
            return NONE(noun=noun, chip=chip)
        first = self.rows[0]
        count = len(self.rows)
        return SAID(known=self.known_count, count=count, noun=noun, chip=chip, name=first.word, basis=first.basis)


def evidence(
    source: Source, model: str, settings: Settings = SETTINGS, *, metric: VariedMetricName = "latency"
) -> EvidenceAnswer:
    """List the numbers that move a result of a chip by a tenth or more, with the measurements behind each.

    A tenth: a tenth of a percent per percent of the number. A question without a precision takes `USUAL`
    or the nearest one that the chip has. Raises like `sensitivity`; UsageError for more than one chip.
    """
    selection = select_hardware(settings)
    if len(selection.pairs) != 1:
        raise UsageError(f"evidence takes one chip, found {len(selection.pairs)}: name one of them")
    if not settings.states_precision:
        settings = attrs.evolve(settings, precision=selection.pairs[0][0].nearest_precision(USUAL))
    settings.check_single("evidence")
    plan = plan_selected((model,), settings, selection)
    with opening_variations(source, plan, metric, USAGE) as (scope, variations, paid):
        scope.check_evaluated()
        (variation,) = variations  # none of a chip that refused the model
        rows = _list_moving(variation, metric)
        facts = find_swings(scope, [], metric)
    return EvidenceAnswer(
        scope=scope, metric=metric, paid=paid, facts=facts, rows=make_table("evidence", Evident, rows)
    )


def _list_moving(variation: Variation, metric: VariedMetricName) -> list[Evident]:
    """Return the numbers that move a result by a tenth or more, largest share of its uncertainty first."""
    variation.prepare_all()
    known = _find_evidence(variation)
    slopes = {name: variation.slope(metric, name)[0] or 0.0 for name in variation.constants}
    squares = {name: (one * variation.spread(name).log) ** 2 for name, one in slopes.items()}
    total = sum(squares.values())
    rows = [
        Evident(
            hardware=variation.name,
            **describe_constant(variation.constants[name]),
            method="evaluated",
            elasticity=slope,
            **_count(known.get(name)),
            half_width=find_thinness(known.get(name)),
            uncertainty_fraction=squares[name] / total if total else None,
        )
        for name, slope in slopes.items()
        if abs(slope) >= MOVING and not _is_neutral(variation.constants[name])
    ]
    return sorted(rows, key=lambda row: (-(row.uncertainty_fraction or 0.0), -abs(row.elasticity), row.constant))


def _is_neutral(constant: Constant) -> bool:
    """Return whether a number is a factor of all times that no calibration has stated: it claims nothing."""
    return constant.name in SCALED and constant.value == 1.0


def _find_evidence(variation: Variation) -> Mapping[str, Evidence | None]:
    """Return name of a constant -> measurements behind it."""
    hardware = variation.hardware
    prices = {".".join(one.key): one.evidence for one in hardware.reference}
    return {**{name: one.evidence for name, one in hardware.quantities()}, **prices}


def _count(known: Evidence | None) -> dict[str, Any]:
    return {"sources": None, "boards": None, "models": None} if known is None else attrs.asdict(known)
