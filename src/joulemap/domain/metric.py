"""Metrics by which runs are compared, ranked, chosen and explained. Python and SQL share this table.

Energy and energy x delay are per batch; a metric per inference says so in its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from joulemap.system.record import frozen

TIE_RATIO: Final = 1.005
"""Ratio below which two values look equal at the digits shown."""

MetricName = Literal[
    "energy",
    "energy_per_inference",
    "latency",
    "throughput",
    "edp",
    "edp_per_inference",
    "memory",
    "power",
    "efficiency",
    "utilization",
    "price",
    "purchase",
    "cost",
    "carbon",
]

PartMetricName = Literal["energy", "latency", "edp", "memory"]
"""Metrics that parts of a model also have, and that explain a difference between two runs."""

VariedMetricName = Literal["energy", "latency", "throughput", "edp", "power", "efficiency", "cost", "carbon"]
"""Metrics that can be computed again for other values of the constants of a chip."""

RunMetricName = Literal["energy", "latency", "edp", "memory", "throughput", "power", "efficiency"]
"""Metrics that compare whole runs."""


@frozen(kw_only=True)
class Metric:
    """Metric, stored in a column of the same name wherever runs are compared."""

    name: MetricName
    label: str
    """Label in tables and sentences."""
    unit: str
    column: str
    """Name of the column with the value."""
    formula: str = ""
    """SQL of the column, over `energy_j`, `latency_s` and `interval_s` of a batch, and `batch`; empty for a column that
    a view or query states itself.
    """
    column_meaning: str = ""
    """Meaning of the column in views of the database; empty for a column that no view has."""
    per: Literal["batch", "inference", "second", "chip", "million inferences"]
    """Unit of work that one value refers to."""
    is_higher_better: bool = False
    missing: str = ""
    """Missing input that makes the metric null; empty if it is never null."""
    latency_power: float = 0.0
    """Exponent of latency in the metric, by which an error of latency propagates."""
    energy_power: float = 0.0
    """Exponent of energy in the metric, by which an error of energy propagates."""

    @property
    def half_width_column(self) -> str:
        """Column with the half-width of the 80 % interval of the metric's logarithm; empty for a metric without an
        interval.
        """
        powers = (abs(self.latency_power), abs(self.energy_power))
        if powers == (1.0, 1.0):
            return "edp_half_width" if self.latency_power == self.energy_power else "power_half_width"
        return {(1.0, 0.0): "latency_half_width", (0.0, 1.0): "energy_half_width"}.get(powers, "")

    @property
    def best(self) -> str:
        """Better direction: `lowest` or `highest`."""
        return "highest" if self.is_higher_better else "lowest"

    @property
    def meaning(self) -> str:
        """Label of the metric; `of a batch` or `of a million inferences` follows if that is its unit of work."""
        is_named = self.per not in ("batch", "million inferences")
        return self.label if is_named else f"{self.label} of a {self.per}"

    @property
    def is_of_runs(self) -> bool:
        """True if the metric follows from runs alone, without prices or usage of a chip."""
        return self.per not in ("chip", "million inferences")


METRICS: Final = (
    Metric(name="energy", label="energy", unit="J", column="energy_j", per="batch", energy_power=1.0,
           column_meaning="Energy per batch, static energy included"),
    Metric(name="energy_per_inference", label="energy per inference", unit="J",
           column="energy_per_inference_j", formula="energy_j / batch", per="inference", energy_power=1.0,
           column_meaning="Energy per batch over batch size"),
    Metric(name="latency", label="latency", unit="s", column="latency_s", per="batch", latency_power=1.0,
           column_meaning="Latency of a batch"),
    Metric(name="throughput", label="throughput", unit="1/s",
           column="throughput_per_s", formula="batch / interval_s", per="second", is_higher_better=True,
           latency_power=-1.0,
           column_meaning="Inferences per second in steady state: batch over the time from one batch to the next"),
    Metric(name="edp", label="energy x delay", unit="Js", column="edp_js", formula="energy_j * latency_s", per="batch",
           latency_power=1.0, energy_power=1.0,
           column_meaning="Energy x latency, per batch; those of the parts do not add up to that of the run"),
    Metric(name="edp_per_inference", label="energy x delay per inference", unit="Js",
           column="edp_per_inference_js", formula="energy_j / batch * latency_s", per="inference",
           latency_power=1.0, energy_power=1.0,
           column_meaning="Energy per inference x latency of a batch"),
    Metric(name="memory", label="memory", unit="B", column="peak_memory_bytes", per="batch",
           column_meaning="Bytes of weights and peak activations"),
    Metric(name="power", label="power", unit="W", column="average_power_w", per="second",
           latency_power=-1.0, energy_power=1.0,
           column_meaning="Energy of a batch over the time from one batch to the next"),
    Metric(name="efficiency", label="inferences per joule", unit="1/J",
           column="inferences_per_j", formula="batch / energy_j", per="inference", is_higher_better=True,
           energy_power=-1.0,
           column_meaning="Batch size over energy per batch"),
    Metric(name="utilization", label="compute utilization", unit="1",
           column="compute_utilization_fraction", per="batch", is_higher_better=True, latency_power=-1.0,
           column_meaning="Operations (two per computed MAC) over what the peak allows from one batch to the next"),
    Metric(name="price", label="cloud price", unit="USD/h",
           column="price_cloud_usd_per_hour", per="chip", missing="cloud price",
           column_meaning="Rental price of one chip in a cloud, USD per hour; null where unknown"),
    Metric(name="purchase", label="purchase price", unit="USD",
           column="price_purchase_usd", per="chip", missing="purchase price",
           column_meaning="Purchase price of one chip, USD; null where unknown"),
    Metric(name="cost", label="cost", unit="USD",
           column="usd_per_million", per="million inferences", missing="cloud or purchase price", latency_power=1.0),
    Metric(name="carbon", label="carbon", unit="g", column="gco2_per_million", per="million inferences",
           energy_power=1.0),
)  # fmt: skip

METRIC: Final[Mapping[str, Metric]] = {metric.name: metric for metric in METRICS}
"""Name -> metric."""

METRIC_NAMES: Final[tuple[MetricName, ...]] = get_args(MetricName)
PART_METRICS: Final[tuple[PartMetricName, ...]] = get_args(PartMetricName)
VARIED_METRICS: Final[tuple[VariedMetricName, ...]] = get_args(VariedMetricName)
RUN_METRICS: Final[tuple[RunMetricName, ...]] = get_args(RunMetricName)
