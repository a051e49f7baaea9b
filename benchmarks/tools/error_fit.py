"""Estimate the uncertainty of predictions from past errors: half-widths by group, and correlations of errors.

Half-widths are those of 80 % intervals of ln(measured / predicted). Let q be the 80 % quantile of absolute errors among
rows on one chip with one runtime and precision. A coarser group takes the root mean square of its subgroups. This is
the error expected of an unseen subgroup. Each group is shrunk towards its parent group, as in an empirical Bayes
estimate of a variance:

    h^2 = (n q^2 + F h_above^2) / (n + F)

Here n is the number of model families, counted on each board, and F is `FULL_GROUPS`. All rows of one family on one
board count as one. The subgroups of a class are weighted by the square root of their number of families. A board
measured a hundred times therefore does not dominate its class. A class without measurements takes the spread of all
classes, each counted once, times `WIDENED`.

Boards that share a compiler also form a group, shrunk towards the group of their class. Its half-width describes other
chips of this compiler, so n counts boards. A board is not shrunk towards this group: with the model held out, the
intervals would contain 71 % of the held-out rows instead of 80 %. Chips without a list of operators, such as GPUs, have
no such group.

A class may lack rows of one kind of work, such as the first step of a language model where only image models were
measured. This kind takes the spread of all work of the class, with equal weight for each kind. The spread is shrunk
towards that of all classes, and is at least that of the class's whole models.

If a model was used for fitting, its error shows the quality of the fit, not the error on an unfitted board. Such a row
may have a second error (`foreign_error`), of a prediction without the numbers fitted to its board: the error of a new
board. Groups of several boards use these second errors. At the levels of runtime and precision, the second errors of
one board count as one, because they share its static power and the scale of its energies. Groups of one board, and
their parent groups, use the first errors. A class is untested if all rows of its models were fitted and have no second
error. If other classes are tested, its groups of several boards get at least the half-width of a class without
measurements.

A prediction with the inherited calibration of another board is better than one with class defaults. Its error belongs
to the group of its own board only, which is shrunk towards the groups of other boards.

Runs that share a factor share its part of the variance. The factors are the class, the board, the model in a class, the
model on a board, and the case (model, batch, precision and runtime in a class). Each part is the mean product of
standardized errors over pairs of runs that share the factor, minus the parts of other shared factors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.calibrate.error_fit import ALIKE, LEVELS, Key, Residual, find_quantile
from joulemap.physics.interval.error_scale import (
    COMPILER_LEVEL,
    FULL_GROUPS,
    MODEL,
    OWN_LEVEL,
    ErrorScale,
    ErrorShare,
)
from joulemap.physics.record.quantity import Quantity

ASKED: Final = tuple(name for name in LEVELS if name != "compiler")
"""Attributes by which a prediction finds its group; the compiler follows from the chip."""


CLASS_LEVEL: Final = 2
"""Level of groups of one class with all kinds of work; finer levels separate the kinds."""


MODEL_LEVEL: Final = 3
"""Level of groups of one class and one kind of work."""


ABOVE: Final = (0, 0, 0, 1, 3, 4, 3, 5)
"""Level -> level of the parent group, towards which a group is shrunk."""


PARTS: Final = (1, 3, 3, 4, 5, OWN_LEVEL, OWN_LEVEL)
"""Level -> level of the subgroups that a group combines."""


WIDENED: Final = 1.5
"""Factor on the half-width of all measured classes, used for a class without measurements."""


CLIPPED: Final = 2.5
"""Maximum standardized error; larger errors are clipped to it before errors are correlated."""


LEAST: Final = 1e-3
"""Minimum half-width of a group, in natural logarithms."""


def fit_scales(
    residuals: Sequence[Residual], compilers: Mapping[str, str] = MappingProxyType({})
) -> tuple[ErrorScale, ...]:
    """Return the half-width of every group that has rows, for one quantity, coarsest group first.

    `compilers` maps chips to the compilers of their models. A chip without rows gets the half-width of its compiler.
    """
    named = [attrs.evolve(one, compiler=compilers.get(one.hardware, "")) for one in residuals]
    independent = [one for one in named if not one.is_inherited]
    scales = _fit_groups([_as_foreign(one) for one in independent], compilers)
    if any(one.foreign_error is not None for one in independent):
        of_own = _fit_groups([one for one in independent if not one.is_foreign], compilers)
        own = {_name(one): one for one in of_own if one.level == OWN_LEVEL}
        scales = [own.get(_name(one), one) for one in scales]
    scales += _fit_inherited([one for one in named if one.is_inherited], scales)
    of_models = {one.architecture: one.half_width for one in scales if one.level == MODEL_LEVEL and one.work == MODEL}
    return tuple(
        attrs.evolve(one, half_width=max(one.half_width, of_models.get(one.architecture, 0.0)))
        if one.level == CLASS_LEVEL
        else one
        for one in scales
    )


def _as_foreign(one: Residual) -> Residual:
    """Return a residual with `foreign_error` in place of `error`, if it has one."""
    return one if one.foreign_error is None else attrs.evolve(one, error=one.foreign_error)


def _name(scale: ErrorScale) -> Key:
    return tuple(getattr(scale, name) for name in ASKED)


def _fit_inherited(residuals: Iterable[Residual], scales: Sequence[ErrorScale]) -> list[ErrorScale]:
    """Return the half-width of each board with an inherited calibration, shrunk towards the groups of other boards."""
    groups: dict[Key, list[Residual]] = defaultdict(list)
    for one in residuals:
        groups[one.key(OWN_LEVEL)].append(one)
    fits = []
    for rows in groups.values():
        above = find_scale(scales, rows[0])
        if above is not None:
            count = len({one.group for one in rows})
            square = count * find_quantile(rows, LEAST) ** 2 + FULL_GROUPS * above.half_width**2
            fits.append(
                attrs.evolve(
                    above,
                    level=OWN_LEVEL,
                    **{name: getattr(rows[0], name) for name in ASKED},
                    half_width=float(np.sqrt(square / (count + FULL_GROUPS))),
                    group_count=count,
                    row_count=len(rows),
                )
            )
    return fits


def _find_unit(one: Residual, level: int) -> tuple[str, ...]:
    """Return a key for counting the independent rows of a group at this level; rows with equal keys count as one."""
    is_common = level == COMPILER_LEVEL or (one.foreign_error is not None and MODEL_LEVEL < level < OWN_LEVEL)
    return (one.hardware,) if is_common else one.group


def _fit_groups(residuals: Sequence[Residual], compilers: Mapping[str, str]) -> list[ErrorScale]:
    """Return the half-width of every group.

    A class with only fitted rows gets at least the half-width of a class without measurements.
    """
    tested = {
        one.architecture for one in residuals if one.work == MODEL and (not one.seen or one.foreign_error is not None)
    }
    levels: list[dict[Key, list[Residual]]] = [defaultdict(list) for _ in ALIKE]
    for one in residuals:
        for level, groups in enumerate(levels):
            if one.has(level):
                groups[one.key(level)].append(one)
    counts = [
        {key: len({_find_unit(one, level) for one in rows}) for key, rows in groups.items()}
        for level, groups in enumerate(levels)
    ]
    counts[CLASS_LEVEL] = {key: len({one.work for one in rows}) for key, rows in levels[CLASS_LEVEL].items()}
    plain = {len(PARTS): {key: find_quantile(rows, LEAST) for key, rows in levels[-1].items()}}
    for level in range(len(PARTS) - 1, -1, -1):
        below = PARTS[level]
        weights = {key: 1.0 if level <= CLASS_LEVEL else count**0.5 for key, count in counts[below].items()}
        plain[level] = _join_parts(plain[below], weights, level)
    widths: dict[Key, float] = {}
    scales = []
    for level, groups in enumerate(levels):
        for key, rows in groups.items():
            width, count = plain[level][key], counts[level][key]
            if level > 0:
                above = widths[rows[0].key(ABOVE[level])]
                width = float(np.sqrt((count * width**2 + FULL_GROUPS * above**2) / (count + FULL_GROUPS)))
            is_class = MODEL_LEVEL <= level < OWN_LEVEL and rows[0].work == MODEL
            if is_class and tested and rows[0].architecture not in tested:
                width = max(width, WIDENED * widths[rows[0].key(CLASS_LEVEL - 1)])
            widths[key] = width
            names = dict(zip(LEVELS, key, strict=True))
            chips = [names["hardware"]]
            if level == COMPILER_LEVEL:
                chips = [
                    chip
                    for chip, compiler in compilers.items()
                    if compiler == names["compiler"] and (*key[:-1], chip) not in levels[OWN_LEVEL]
                ]
            scales += [
                ErrorScale(
                    quantity=rows[0].quantity,
                    level=level,
                    architecture=names["architecture"],
                    work=names["work"],
                    runtime=names["runtime"],
                    precision=names["precision"],
                    hardware=chip,
                    half_width=width if level >= CLASS_LEVEL else width * WIDENED,
                    group_count=count,
                    row_count=len(rows),
                )
                for chip in chips
            ]
    return scales


def find_scale(scales: Iterable[ErrorScale], residual: Residual) -> ErrorScale | None:
    """Return the finest group that a residual belongs to; None if there is none."""
    fitting = [one for one in scales if all(getattr(one, name) in ("", getattr(residual, name)) for name in ASKED)]
    return max(fitting, key=lambda one: one.level, default=None)


def fit_shares(residuals: Sequence[Residual], scales: Sequence[ErrorScale]) -> tuple[ErrorShare, ...]:
    """Return the parts of the error variance that runs have in common, such as by class or board, for one quantity."""
    columns = {
        name: np.array([str(getattr(one, name)) for one in residuals])
        for name in ("architecture", "hardware", "family", "model", "runtime", "precision", "batch")
    }
    widths = np.array([scale.half_width if (scale := find_scale(scales, one)) else np.nan for one in residuals])
    errors = np.clip(np.array([one.error for one in residuals]) / widths, -CLIPPED, CLIPPED)
    sizes = Counter(one.hardware for one in residuals)
    weights = np.array([sizes[one.hardware] ** -0.5 for one in residuals])
    variance = float(np.average(errors**2, weights=weights))
    same = {name: column[:, None] == column[None, :] for name, column in columns.items()}
    apart = ~np.eye(len(residuals), dtype=bool)
    products, pair_weights = errors[:, None] * errors[None, :], weights[:, None] * weights[None, :]

    def correlate(*masks: NDArray[np.bool_]) -> tuple[float, int]:
        mask = np.logical_and.reduce((apart, *masks))
        total = float(pair_weights[mask].sum())
        mean = float((products * pair_weights)[mask].sum()) / total / variance if total else 0.0
        return mean, int(mask.sum()) // 2

    of_class, board, model = same["architecture"], same["hardware"], same["model"]
    case = same["runtime"] & same["precision"] & same["batch"]
    measured = {
        "class": correlate(of_class, ~board, ~same["family"]),
        "board": correlate(board, ~same["family"]),
        "model": correlate(of_class, ~board, model, ~case),
        "board_model": correlate(board, model, ~case),
        "case": correlate(of_class, ~board, model, case),
    }
    part: dict[str, float] = {}
    for name, others in (
        ("class", ()), ("board", ("class",)), ("model", ("class",)),
        ("board_model", ("class", "board", "model")), ("case", ("class", "model")),
    ):  # fmt: skip
        part[name] = max(measured[name][0] - sum(part[other] for other in others), 0.0)
    excess = max(sum(part.values()), 1.0)
    return tuple(
        ErrorShare(
            quantity=residuals[0].quantity,
            factor=name,
            share=Quantity(
                value=share / excess,
                unit="1",
                basis="measured",
                source=f"mean product of {measured[name][1]:,} pairs of errors that share it (docs/doubt.md)",
                note="",
            ),
        )
        for name, share in part.items()
    )


def _join_parts(parts: Mapping[Key, float], weights: Mapping[Key, float], level: int) -> dict[Key, float]:
    """Return group -> weighted root mean square of its parts: the error expected of an unseen part."""
    squares: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for key, width in parts.items():
        whole = tuple(text if name in ALIKE[level] else "" for name, text in zip(LEVELS, key, strict=True))
        squares[whole].append((width**2, weights[key]))
    return {
        key: float(np.sqrt(np.average([one for one, _ in pairs], weights=[weight for _, weight in pairs])))
        for key, pairs in squares.items()
    }
