"""Write the first part of docs/accuracy.md, on held-out measurements, and its figure from docs/scoreboard.csv."""

from __future__ import annotations

import csv
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.show.figure.convert import SYMBOLS, to_svg
from joulemap.show.present.palette import HUES, PAGE as SURFACE
from joulemap.system.record import frozen

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = DOCS / "accuracy.md"
CSV, FIGURE = (DOCS / f"scoreboard.{end}" for end in ("csv", "svg"))
SOURCES: Final = Path(__file__).parent / "peer" / "source.toml"

FITTED_MARK: Final = "<!-- rows used for fitting -->\n"
"""Beginning of the second part of the page, which `benchmarks/accuracy.py` writes."""

TABLES: Final = (
    "serving",
    "serving_energy",
    "zeus_power_limits",
    "mamf_ceilings",
    "aic_gemm_fp8",
    "ax_samples",
    "netspresso",
    "nvidia_dla",
    "openvino",
    "openvino_encoder",
    "rdk_model_zoo",
    "sophon_demo",
    "tensorrt_bert",
    "ultralytics",
)
"""Public tables with held-out rows."""

OWN: Final = "joulemap on one NVIDIA H200"

WIDTH: Final = 120
MANY: Final = 3_000
"""Minimum number of rows used for choices that gives a source its own line."""

FEW: Final = 8
"""Minimum number of rows of a drawn line."""

LARGE: Final = 16
"""Minimum number of rows of a line of the table by source."""

UNDRAWN: Final = ("FLOP / peak",)
"""Predictors that are far off everywhere and would widen the figure."""

PLAIN: Final = ("FLOP / peak", "TDP", "linear", "roofline", "size / bandwidth")
"""Predictors that are formulas of a data sheet; only docs/scoreboard.csv has them."""

LEAST: Final = 10
"""Minimum number of rows of a line of predictors that joulemap is closer than."""

RESTATED: Final = ("output_tokens_per_s", "total_tokens_per_s", "energy_per_request_j")
"""Quantities that repeat another quantity of the same rows, and are not drawn."""

TOLD: Final = {
    "latency_s": "latency",
    "operator_latency_s": "single operators",
    "operator_energy_j": "energy of operators",
    "operator_power_w": "power of operators",
    "throughput_per_s": "rate",
    "energy_j": "energy",
    "time_to_first_token_s": "first token",
    "inter_token_latency_s": "TPOT",
    "request_latency_s": "request",
    "output_tokens_per_s": "output tokens",
    "total_tokens_per_s": "all tokens",
    "energy_per_output_token_j": "J per token",
    "energy_per_request_j": "J per request",
    "power_w": "power",
    "peak_memory_bytes": "memory",
    "samples_per_s": "training rate",
}
"""Quantity -> its displayed name."""

HEAD: Final = """\
# Can I trust it for my chip?

The answer depends on the class of your chip, on the quantity, and on how near your work is to what was measured. This
table has **held-out measurements** alone: no coefficient, calibration or interval was chosen with a row of it. About
80 % of the rows should be inside their 80 % interval.
"""

AFTER: Final = """\
For one chip, ask the tool. `validate` scores predictions against every measurement that ships, and `--show notes` of
any answer says what its intervals rest on:

    joulemap validate --hardware t4                     errors and number of measurements of a chip, by runtime
    joulemap validate --hardware H200 --by family       also split, scope, precision, batch, kind and operator
    joulemap measurements list --hardware T4            the rows, with source and conditions as json or csv
    joulemap measurements import mine.csv               your own rows (its help describes the columns)
    joulemap measurements import public:aic_gemm        published measurements of single operators

![Mean error of joulemap on held-out measurements, and of others on the rows that they predict](scoreboard.svg)

Errors on this page are |predicted / measured - 1| in per cent; `bias` is the signed mean, positive if predictions are
too high. Others measured all rows except those of an H100. Four groups are not wholly held out. The H100 has its own
intervals, fp8 rows of L40S corrected the formula of the quantization kernel, and rows of CPUs chose the extra
half-width of 0.2 for their engines. Rows of joulebench were compared with the static power of the A100 PCIe 80 GB.
Intervals are scored with the board left out for whole models, and with the source left out for served models.

`docs/scoreboard.csv` has all these numbers, also of groups that are too small for these tables.
"""

BESIDE: Final = """\
On these rows, the other predictor has the lower mean or median error. `closer` is the share of the measurements on
which joulemap is closer. Predictions of others are as published, or computed on the same rows by their formulas
(`benchmarks/rival.py`) or by aiconfigurator's package.
"""

APART: Final = """\
All measured times: of whole models by class with the board left out, and of served models by vendor with the source
left out. The last column also leaves out the generation (microarchitecture). Engines are fitted to some of these rows.
"""

BEHIND: Final = """\
Median / mean errors on the rows that both predict. Each predictor has the quantity with the most rows, and of several
the one that it predicts best; `docs/scoreboard.csv` has the others, smaller groups and plain formulas. LLM-Viewer has
single boards, and aiconfigurator the boards of its kernel tables, to some of which joulemap was fitted too.
"""


@frozen(kw_only=True)
class Line:
    """One line of docs/scoreboard.csv."""

    part: str
    """Part of the page: source, class, year, peer, board, energy, evidence, apart, seen or refused."""
    name: str
    quantity: str
    """Quantity; the reason in seen and refused rows; class, boundary and quantity in energy; boundary in evidence."""
    peer: str = ""
    """Other predictor; the chips in evidence, the number of groups in apart."""
    row_count: int
    median: float = 0.0
    mean: float = 0.0
    bias: float = 0.0
    covered_count: int = 0
    interval_count: int = 0
    peer_median: float = 0.0
    peer_mean: float = 0.0
    peer_bias: float = 0.0
    nearer_count: int = 0
    """Number of rows on which joulemap is closer; of held-out rows in evidence, of groups below half
    in apart.
    """

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Part, name, quantity and other predictor, which identify a line."""
        return self.part, self.name, self.quantity, self.peer

    @property
    def mean_text(self) -> str:
        """Displayed mean error."""
        return percent(self.mean)

    @property
    def is_worse(self) -> bool:
        """True if the other predictor has the lower mean or median error."""
        return self.peer_mean < self.mean or self.peer_median < self.median

    @property
    def of(self) -> str:
        """Displayed name of the quantity."""
        if self.name == "NeuSight, training":
            return "forward and backward"
        return TOLD.get(self.quantity, self.quantity)


def percent(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def per_cent(value: float) -> str:
    """Return a fraction in percent without the sign, for tables whose heading has it."""
    return f"{100.0 * value:.1f}"


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file; none if it does not exist."""
    if not path.exists():
        return []
    types = {field.name: {"int": int, "float": float}.get(str(field.type), str) for field in attrs.fields(Line)}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [Line(**{name: types[name](value) for name, value in row.items()}) for row in rows]


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """Write the lines, with errors to a hundredth of a percent."""
    names = [field.name for field in attrs.fields(Line)]
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(names)
        for one in lines:
            cells = (getattr(one, name) for name in names)
            out.writerow(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in cells)


@cache
def sources() -> dict[str, Any]:
    return tomllib.loads(SOURCES.read_text(encoding="utf-8"))


def render(lines: Sequence[Line]) -> str:
    """Return the part of the page on held-out measurements."""
    parts: dict[str, list[Line]] = defaultdict(list)
    for one in lines:
        parts[one.part].append(one)
    worse = [one for one in parts["peer"] if one.is_worse]
    better = [one for one in parts["peer"] if not one.is_worse]
    out = [HEAD, *_trust(parts["class"], parts["energy"], parts["evidence"]), AFTER]
    out += ["## Where are other predictors closer?", BESIDE, *_beside(worse)]
    out += ["## Where is joulemap closer?", BEHIND, *_behind(better)]
    out += ["## How right are intervals where nothing alike was measured?", APART, *_apart(parts["apart"])]
    many = [one for one in parts["source"] if one.row_count >= LARGE and one.quantity not in RESTATED]
    out += ["## By source", *_table(("source", "quantity"), many)]
    out += [f"`docs/scoreboard.csv` has the quantities with fewer than {LARGE} rows.", ""]
    out += [*_energy(parts["energy"], parts["evidence"])]
    out += [*_left_out(parts["seen"], parts["refused"]), *_describe(parts["source"])]
    return "\n".join(out).rstrip() + "\n\n"


CLASSES: Final = {
    "gpu": "GPU", "cpu": "CPU", "npu": "NPU", "tpu": "TPU",
    "dpu": "DPU (FPGA)", "dsp": "DSP", "cgra": "CGRA", "kpu": "KPU",
}  # fmt: skip
"""Class -> its displayed name, in the order of the table."""


def _trust(scored: Sequence[Line], energies: Sequence[Line], evidence: Sequence[Line]) -> Iterator[str]:
    """Yield the table of held-out errors by class, of times and of energies; the last line tells of fitted energies."""
    found = {(one.name, one.quantity): one for one in scored}
    largest: dict[str, Line] = {}
    for one in sorted(energies, key=lambda one: one.row_count):
        largest[one.quantity.split()[0]] = one
    fitted = Counter[str]()
    for one in evidence:
        fitted[one.name] += one.row_count - one.nearer_count

    def cells(line: Line | None, otherwise: str, covered: Line | None) -> tuple[object, object, object]:
        shown = covered if line is not None and covered is not None and not line.interval_count else line
        return (f"{line.row_count:,}", per_cent(line.median), _cover(shown or line)) if line else (otherwise, "-", "-")

    header = ("class", "times", "median error", "% inside", "energies", "median error", "% inside")
    rows: list[tuple[object, ...]] = []
    for key, name in CLASSES.items():
        own = largest.get(key)
        none = f"none ({fitted[key]} fitted)" if fitted[key] else "none"
        energy = found.get((key, "energy and power"), own)
        rows.append((name, *cells(found.get((key, "time")), "none", None), *cells(energy, none, own)))
    yield from _rows(header, rows)


def _apart(scored: Sequence[Line]) -> Iterator[str]:
    """Yield the table of intervals that others alone decide: first without boards or sources, then generations."""
    pairs: dict[str, list[Line]] = defaultdict(list)
    for one in scored:
        pairs[one.name].append(one)
    rows: list[tuple[object, ...]] = []
    for name, some in pairs.items():
        first, last = sorted(some, key=lambda one: "generation" in one.quantity)
        if first.row_count < FEW:
            continue
        cells = f"{first.row_count:,}", per_cent(first.median), _cover(first), _cover(last)
        rows.append((CLASSES.get(name, name), *cells))
    header = "class or vendor", "times", "median error", "% inside", "generation out"
    yield from _rows(header, rows)


def split_page() -> tuple[str, str]:
    """Return the two parts of the page: held-out measurements, and from the mark on the rows used for fitting."""
    first, mark, second = PAGE.read_text(encoding="utf-8").partition(FITTED_MARK)
    return first, mark + second


def _energy(scored: Sequence[Line], evidence: Sequence[Line]) -> Iterator[str]:
    """Yield the section on measured energies."""
    counts = Counter[str]()
    for one in evidence:
        counts[one.name] += one.row_count
    none = [name for name, count in counts.items() if not count]
    measured = [name for name, count in counts.items() if count]
    yield "## Energy by source, class and boundary"
    yield textwrap.fill(
        f"{len(measured)} of {len(counts)} classes have measured energies. **No measured energies of "
        f"{', '.join(none)} are known**: predictions for these classes are untested. Power is scored where no time was "
        "measured. `joulemap validate --evidence` counts the measured and held-out energies of each chip.",
        WIDTH,
        break_on_hyphens=False,
    )
    yield ""
    yield from _rows(
        ("source", "class", "boundary", "quantity", "rows", "median", "bias", "% inside"),
        (
            (one.name, *one.quantity.split(), f"{one.row_count:,}", *map(per_cent, (one.median, one.bias)), _cover(one))
            for one in scored
            if one.row_count > 1
        ),
    )


def _rows(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    header = list(header)
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)
    yield ""


def _beside(lines: Iterable[Line]) -> Iterator[str]:
    header = (
        "source",
        "quantity",
        "rows",
        "other predictor",
        "its median",
        "mean",
        "bias",
        "joulemap's median",
        "mean",
        "bias",
        "closer, %",
    )
    yield from _rows(
        header,
        (
            (
                one.name, one.of, one.row_count, one.peer,
                *map(per_cent, (one.peer_median, one.peer_mean, one.peer_bias, one.median, one.mean, one.bias)),
                f"{100.0 * one.nearer_count / one.row_count:.0f}",
            )
            for one in lines
        ),
    )  # fmt: skip


def _behind(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the table of predictors with larger errors, each by the quantity with the most rows, and of several by its
    best one.
    """
    best: dict[str, Line] = {}
    for one in sorted(lines, key=lambda one: (one.row_count, -one.peer_mean)):
        if one.row_count >= LEAST and one.peer not in PLAIN and one.quantity not in RESTATED:
            best[one.peer] = one
    told = (
        (one.peer, one.name, one.of, one.row_count, _pair(one.peer_median, one.peer_mean), _pair(one.median, one.mean))
        for one in sorted(best.values(), key=lambda one: one.peer_mean)
    )
    yield from _rows(("other predictor", "source", "quantity", "rows", "its error", "joulemap's"), told)


def _pair(median: float, mean: float) -> str:
    return f"{per_cent(median)} / {per_cent(mean)}"


def _table(header: Iterable[str], lines: Iterable[Line]) -> Iterator[str]:
    yield from _rows(
        (*header, "rows", "median", "bias", "% inside"),
        (
            (one.name, one.of, f"{one.row_count:,}", *map(per_cent, (one.median, one.bias)), _cover(one))
            for one in lines
        ),
    )


def _cover(one: Line) -> str:
    if not one.interval_count:
        return "-"
    few = "" if one.interval_count == one.row_count else f" of {one.interval_count}"
    return f"{100.0 * one.covered_count / one.interval_count:.0f}{few}"


def _left_out(seen: Sequence[Line], refused: Sequence[Line]) -> Iterator[str]:
    count = sum(one.row_count for one in seen)
    yield "## Which rows are not here?"
    yield textwrap.fill(
        f"{count:,} measured numbers were used to choose a coefficient. The tables of [single "
        "operators](#held-out-shapes-and-boards) hold out their shapes or boards.",
        WIDTH,
        break_on_hyphens=False,
    )
    yield ""
    uses = list(_group_uses(seen))
    shown = [one for one in uses if int(one[2].replace(",", "")) >= MANY]
    yield from _rows(("source", "used for", "numbers"), shown)
    yield textwrap.fill(
        f"`docs/scoreboard.csv` lists {len(uses) - len(shown)} more groups of sources with fewer numbers, and the "
        f"{sum(one.row_count for one in refused)} rows that could not be predicted, with the reason.",
        WIDTH,
    )
    yield ""


def _group_uses(seen: Iterable[Line]) -> Iterator[tuple[str, str, str]]:
    """Yield (sources, their largest use with the number of further ones, number of their rows)."""
    groups: dict[str, list[Line]] = defaultdict(list)
    for one in seen:
        name = OWN if one.name.startswith("joulemap measurement") else one.name
        groups[name.partition(" (")[0].partition(" docs/")[0]].append(one)
    uses: dict[str, dict[str, int]] = defaultdict(dict)
    for name, lines in sorted(groups.items()):
        lines.sort(key=lambda one: -one.row_count)
        further = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
        uses[lines[0].quantity.partition(";")[0] + further][name] = sum(one.row_count for one in lines)
    for use, counts in uses.items():
        yield ", ".join(counts), use, f"{sum(counts.values()):,}"


def _describe(lines: Iterable[Line]) -> Iterator[str]:
    yield "## Who measured, and what was predicted?"
    yield textwrap.fill(
        "`joulemap measurements list --format json` cites the sources of rows that ship, and `joulemap measurements "
        "tables` those to import. `benchmarks/peer/source.toml` cites these, with conditions and command, and has the "
        "errors that other tools state for other rows. `joulemap validate --source NAME` scores a source; `--by split` "
        "separates fitted rows.",
        WIDTH,
    )
    yield ""
    for name in dict.fromkeys(one.name for one in lines):
        if (one := sources().get(name)) is not None:
            yield textwrap.fill(f"**{name}**: {one['title']}.", WIDTH, initial_indent="- ", subsequent_indent="  ")
    yield ""


def draw(lines: Sequence[Line]) -> str:
    """Return the figure as SVG: mean errors of joulemap and of others on equal rows, by source, quantity and rows."""
    rows: list[dict[str, object]] = []
    for one in lines:
        if one.part != "peer" or one.row_count < FEW or one.quantity in RESTATED or one.peer in UNDRAWN:
            continue
        label = f"{one.name}: {one.of} ({one.row_count})"
        own = {"label": label, "who": "joulemap", "mean": one.mean}
        rows += [*([] if own in rows else [own]), {"label": label, "who": one.peer, "mean": one.peer_mean}]
    order = sorted({str(row["label"]) for row in rows})
    who = ["joulemap", *sorted({str(row["who"]) for row in rows} - {"joulemap"})]
    y = {"field": "label", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 330, "grid": True}}
    x = {"field": "mean", "type": "quantitative", "title": "mean error (logarithmic)", "axis": {"format": ".0%"},
         "scale": {"type": "log"}}  # fmt: skip
    joulemap, *others = [one.fill for one in HUES.values()]
    colours, symbols = [joulemap], [SYMBOLS[0]]
    for place in range(len(who) - 1):  # a colour comes again in another shape
        colours.append(others[place % len(others)])
        symbols.append(SYMBOLS[1 + (place + place // len(others)) % (len(SYMBOLS) - 1)])
    view = {
        "title": {"text": "Mean error on held-out measurements",
                  "subtitle": "joulemap and others on the same rows, of which the number is in parentheses; "
                  "further left is nearer"},
        "data": {"values": rows}, "width": 380, "height": {"step": 19},
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
        "encoding": {"x": x, "y": y,
                     "color": {"field": "who", "type": "nominal", "title": None,
                               "scale": {"domain": who, "range": colours}},
                     "shape": {"field": "who", "type": "nominal", "title": None,
                               "scale": {"domain": who, "range": symbols}}},
        "config": {"axisY": {"gridColor": SURFACE["light"]["faint"]}},
    }  # fmt: skip
    return to_svg(view, "light")
