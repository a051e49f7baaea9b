"""How far off predictions of each class of hardware are, and why: a section of docs/accuracy.md.

Figures are those of the view `prediction_errors`; what is typed in is why, without a figure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.plan.catalogue import known_hardware
from joulemap.workspace import Workspace

Row = Mapping[str, Any]

WIDTH: Final = 120

TEXT: Final = """\
## By class of hardware
Times of all rows of a class together, those of a published rate from one batch to the next, single operators apart;
`fitted` is the part of them that coefficients were chosen with in view. A class without a row has formulas and
assumptions that no measurement has tested.
"""

CAUSES: Final[Mapping[str, str]] = {
    "cgra": "The one CGRA of the catalogue is a design that was never made, so nothing can be measured on it.",
    "cpu": (
        "A core's clock under vector load is not published and one efficiency stands for each kind of instruction, "
        "where libraries choose an algorithm for each shape; ncnn's rows are of versions and boards that differ."
    ),
    "dpu": (
        "Operators without an instruction run on the Arm cores beside the fabric, whose pace is one number for all of "
        "them; what the compiler fuses or splits is not known."
    ),
    "dsp": "One result fits one efficiency, and the tensor accelerator beside the vector unit is left out.",
    "gpu": (
        "Libraries choose among many kernels for a shape, which two or three tiles stand for; coefficients are those "
        "of a few boards of NVIDIA's, so that other makes and engines that tune for each shape are further off."
    ),
    "kpu": "No silicon has been published: peaks and power are projections, and coefficients assumptions.",
    "npu": (
        "Compilers are closed, so that what stays on chip and what is moved to the host is a rule here; coefficients "
        "of Hailo-8 and Cloud AI 100 come from the rates that their makers publish."
    ),
    "tpu": "What XLA fuses and how it lays out operands is a rule here, and most coefficients are assumptions.",
}
"""Class -> what its errors come from."""

SCORES: Final = """
WITH scored AS (
    SELECT
        architecture,
        CASE WHEN family = 'operator' THEN 'operators' ELSE 'models' END AS part,
        hardware,
        family,
        seen <> '' AS is_fitted,
        CASE quantity
            WHEN 'latency_s' THEN error_fraction
            WHEN 'throughput_per_s' THEN 1 / (1 + error_fraction) - 1
        END AS error,
        CASE WHEN quantity = 'energy_j' THEN error_fraction END AS energy_error
    FROM prediction_errors
    WHERE runtime IS NOT NULL AND quantity IN ('latency_s', 'throughput_per_s', 'energy_j')
)
SELECT
    architecture,
    part,
    count(error) AS row_count,
    count(DISTINCT split_part(hardware, '@', 1)) AS board_count,
    avg(abs(error)) AS mean,
    median(abs(error)) AS median,
    avg(error) AS bias,
    avg(abs(energy_error)) AS energy,
    avg(is_fitted::INT) AS fitted
FROM scored
GROUP BY architecture, part
ORDER BY architecture, part
"""

FURTHEST: Final = """
SELECT architecture, hardware, family, mean, bias
FROM (
    SELECT
        architecture,
        split_part(hardware, '@', 1) AS hardware,
        family,
        avg(abs(error)) AS mean,
        avg(error) AS bias
    FROM (
        SELECT
            architecture,
            hardware,
            family,
            CASE quantity
                WHEN 'latency_s' THEN error_fraction
                WHEN 'throughput_per_s' THEN 1 / (1 + error_fraction) - 1
            END AS error
        FROM prediction_errors
        WHERE runtime IS NOT NULL
    )
    WHERE error IS NOT NULL AND family <> 'operator'
    GROUP BY ALL
)
QUALIFY row_number() OVER (PARTITION BY architecture ORDER BY mean DESC, hardware, family) = 1
ORDER BY architecture
"""


def class_lines(workspace: Workspace) -> Iterator[str]:
    """Yield the section: a table with a row per class and kind of row, then a line per class of why."""
    scores = workspace.sql(SCORES).records()
    furthest = {row["architecture"]: row for row in workspace.sql(FURTHEST).records()}
    yield TEXT
    yield "| class | of | boards | rows | mean | median | bias | energy | fitted |"
    yield f"|{'---|' * 9}"
    classes = sorted({entry.architecture for entry in known_hardware().values()})
    for name in classes:
        yield from _rows(name, [row for row in scores if row["architecture"] == name])
    yield ""
    for name in classes:
        yield _tell(name, furthest.get(name))
    yield ""


def _rows(name: str, scores: Sequence[Row]) -> Iterator[str]:
    if not scores:
        yield f"| {name} | none | 0 | 0 |{' - |' * 5}"
    for row in scores:
        figures = (row[key] for key in ("mean", "median", "bias", "energy", "fitted"))
        shown = " | ".join("-" if value is None else f"{100.0 * value:.1f} %" for value in figures)
        yield f"| {name} | {row['part']} | {row['board_count']} | {row['row_count']} | {shown} |"


def _tell(name: str, row: Row | None) -> str:
    """Return why a class is off, with the family that is furthest."""
    cause = CAUSES.get(name, "")
    if row is None:
        told = "nobody's measurement is scored."
    else:
        way = "slow" if row["bias"] > 0 else "fast"
        mean = f"{100.0 * row['mean']:.1f} % in the mean, predicted too {way}"
        told = f"furthest off is {row['family']} on {row['hardware']} ({mean})."
    text = f"**{name}**: {told} {cause}".strip()
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
