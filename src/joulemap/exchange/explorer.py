"""Node data for Model Explorer, which colours the nodes of a saved program by a quantity of a run.

The value of a node is the sum over the operators that it runs. Nodes without operators have no value: inputs, views,
and nodes that a compiler folds away.

Source: https://github.com/google-ai-edge/model-explorer/wiki/2.-User-Guide#custom-node-data
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

GRAPH: Final = "graph"
"""Name of the graph of an exported program in Model Explorer."""

GRADIENT: Final = ({"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d55e00"})
"""Colours for the smallest to the largest value: white to vermilion, which also differ in lightness."""


def write_node_data(name: str, values: Mapping[str, float]) -> Iterator[bytes]:
    """Yield the JSON of node data; `values` maps program nodes to numbers, and `name` is shown in Model Explorer."""
    results = {node: {"value": value} for node, value in values.items()}
    data = {GRAPH: {"name": name, "results": results, "gradient": GRADIENT}}
    yield (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()
