"""Text of `explain`, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.present.template import Template

ABOUT: Final = Template("{quantity} of {a} (A) and {b} (B)")
PART: Final = Template("subgraph {part}")

# ---- tables ----------------------------------------------------------------------------------------------------------

CATEGORY_COLUMNS: Final = "category | {a} spent_a | {b} spent_b | +difference | share share_fraction"
CAUSE_COLUMN: Final = " | why the larger is larger by_count_exact"
CATEGORY_KEEP: Final = "{a} | {b}"
MORE_ON: Final = Template("more on {name}")
OTHERS: Final = Template("{count} others")
CATEGORY_TABLE: Final = Template("{quantity} by category")
ALL: Final = "total"

ONE_SIDED: Final = "absent on the other"
COUNT, PRICE, PRESENCE = "count", "price", "presence"
MORE_PARTS: Final = ("more subgraphs", "")
CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    COUNT: ("more actions", "but fewer actions"),
    PRICE: ("more energy each", "but less energy each"),
    PRESENCE: ("extra actions", ""),
}
"""Cause -> two texts: if it widens the difference, and if it narrows the difference."""
CAUSES_OF: Final[Mapping[tuple[str, str], Mapping[str, tuple[str, str]]]] = {
    ("energy", "static"): {COUNT: ("longer time", "but shorter time"), PRICE: ("higher power", "but lower power")},
    ("energy", "host"): {PRICE: ("more work", "but less work")},
    ("time", "compute"): {COUNT: ("more work", "but less work"), PRICE: ("slower", "but faster"), PRESENCE: MORE_PARTS},
    ("time", "memory"): {
        COUNT: ("more bytes", "but fewer bytes"), PRICE: ("slower", "but faster"), PRESENCE: MORE_PARTS,
    },
    ("time", "launch"): {
        COUNT: ("more kernels", "but fewer kernels"), PRICE: ("longer launches", "but shorter launches"),
        PRESENCE: MORE_PARTS,
    },
}  # fmt: skip
"""(Quantity, category) -> texts that replace those of CAUSES for this category."""
FEWER_UNITS: Final = ("fewer busy units", "but more busy units")
SLOWER_UNITS: Final = ("slower units", "but faster units")
"""Two texts on the time of one subgraph: if its units are slower, and if they are faster."""

PURPOSE_TABLE: Final = "Energy and time by purpose"
PURPOSE_COLUMNS: Final = (
    "purpose | *energy A energy_a_j | *energy B energy_b_j | *time A latency_a_s | *time B latency_b_s | "
    "share share_fraction"
)
ENERGY_B, TIME_B = "energy B", "time B"
PURPOSES: Final[Mapping[str, str]] = {
    "weights": "GEMMs with weights",
    "experts": "experts",
    "cache": "attention: keys, values",
    "attention": "attention: computation",
    "logits": "logits",
    "communication": "communication",
    "host": "kernel launches",
    "static": "static power",
    "energy: static": "static power",
    "rest": "norms and the rest",
}
"""Purpose of work in a language model -> displayed name."""

ROLE_TABLE: Final = "Energy by role of the actions"
ROLE_COLUMNS: Final = (
    "role | *A energy_a_j | *B energy_b_j | *difference +difference_j | share share_fraction | "
    "*count A count_a | *count B count_b | *energy each of A price_a_j | *energy each of B price_b_j | "
    "difference from count by_count_fj | difference from energy each by_price_fj | actions A actions_a | "
    "actions B actions_b"
)

TERM_TABLE: Final = "Difference by action"
TERM_COLUMNS: Final = (
    "term | category category_a | *action | *difference +difference_j | *share share_fraction | "
    "*count A count_a | *count B count_b | *energy each of A energy_per_action_a_j | "
    "*energy each of B energy_per_action_b_j | per | basis basis_a"
)
TERM_KEEP: Final = "share | count A | count B"
METRIC_TERM_TABLE: Final = "Terms of the difference"
METRIC_TERM_COLUMNS: Final = (
    "term | *place | *+difference | *share share_fraction | subgraphs part_count | "
    "*count A count_a | *count B count_b | *each in A price_a | *each in B price_b | per"
)
NO_TERM: Final = "Every term is equal on both."
SMALLER: Final = Template("{count} smaller terms")
SUM: Final = "sum of all terms"

TERM_NAMES: Final[Mapping[str, str]] = {
    "static": "static power",
    "energy: static": "static power",
    "price": "energy each",
    "energy: price": "energy each",
    "latency: price": "time each",
}
"""Name of a term in query results -> displayed name, if different."""
PRICE_NAMES: Final[Mapping[str, str]] = {"s": "time each", "B": "bytes each"}
"""Unit of a metric -> displayed name of the term `price`, if it differs from TERM_NAMES."""
EFFECT_NAMES: Final[Mapping[str, str]] = {
    "price": "energy each",
    "time": "static power: longer or shorter time",
    "static power": "static power: higher or lower power",
}

EFFECT_TABLE: Final = "Energy by kind of cause"
EFFECT_COLUMNS: Final = (
    "cause effect | difference +difference_j | share share_fraction | actions action_count | "
    "largest action largest_action | its difference +largest_difference_j"
)

SUBGRAPH_TABLE: Final = Template("{quantity} by subgraph")
OFF_CHIP: Final = "bytes moved off chip"
SUBGRAPH_COLUMNS: Final = (
    "subgraph name | pattern fusion_pattern | +difference | share share_fraction | "
    "mostly largest_action | of it largest_difference_j | energy A energy_a_fj | "
    "energy B energy_b_fj | latency A latency_a_fs | latency B latency_b_fs | "
    "bottleneck A bottleneck_a | bottleneck B bottleneck_b"
)
SUBGRAPH_KEEP: Final = "share | energy A | energy B"
SUBGRAPH_KEEP_ENERGY: Final = "share | mostly | energy A | energy B"

TRAFFIC_TABLE: Final = "Bytes moved by each memory"
TRAFFIC_COLUMNS: Final = (
    "memory component | A bytes_a | B bytes_b | difference +difference_bytes | energy A energy_a_j | "
    "energy B energy_b_j"
)

SHARE: Final = "share share_fraction"
"""Column of the shares of a difference, in the syntax of `lay`."""
SHARE_OF_ENERGY: Final = "share of energy differences share_fraction"
"""Column of the shares of the energy difference, in tables with another metric or in answers on one."""
SHARE_OF_TIME: Final = "share of time differences share_fraction"
"""Column of the shares of the time difference, in tables with energies and times."""

EXACT_SUM: Final = Template("{rows} sum exactly to the difference of the {whole}.")
INEXACT_SUM: Final = Template("{rows} do not sum to the difference of the {whole}: {rest} {unit} are missing.")
ROWS: Final = "All rows together"
ROW_DIFFERENCES: Final = "The differences of all rows, B minus A,"

# ---- notes and next steps --------------------------------------------------------------------------------------------

CAUSE_NOTE: Final = (
    "`why the larger is larger` lists each cause of at least a quarter of a difference; a difference in count is "
    "weighted by the mean energy or time per action, and the remainder is due to energy or time per action"
)
SHARE_NOTE: Final = "shares: each difference divided by the sum of all differences without their signs"
GROUPED: Final = (
    "equivalent actions of different classes are grouped: MACs of tensor cores and of systolic arrays, bytes of all "
    "on-chip memories, instructions, bundles and tokens; operand reads are counted per operation, "
    "on-chip transfers per byte"
)
HIDDEN_ATTENTION: Final = Template(
    "On {hardware:and}, computing attention adds no time, because each kernel waits longer for keys and values"
)
PURPOSE_NOTE: Final = (
    "attention: `keys, values` contains the time of a kernel up to the end of these transfers; `computation` contains "
    "only the time beyond it"
)
UNATTRIBUTED: Final = (
    "unattributed losses: energy that no counted action explains; it follows from the power limit of the board or is a "
    "residual that was fitted to measured boards; a class whose energies are computed from circuits alone has none"
)
CLASS_HEADING: Final = "How these classes work"
CLASS_NOTE: Final = Template("{architecture}, {topic}: {text} ({source})")

BY_SUBGRAPH: Final = Template("explain {model} {a} {b}[ --metric {metric}] --level subgraph")
INTO_SUBGRAPH: Final = Template("explain {model} {a} {b}[ --metric {metric}] --subgraph {part}")
INTO_ACTIONS: Final = Template("analyze {model} {one} --level subgraph --subgraph {part} --by action")
SWEEP: Final = Template("sweep {model} --hardware {a},{b} --batch {batches} --level crossing")
FLIP: Final = Template("flip {model} {a} {b}[ --metric {metric}]")
