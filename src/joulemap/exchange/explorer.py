"""A run as node data of Model Explorer, which colours the nodes of a saved program by it.

A value of a node is the sum over the operators that it runs. Nodes that run none have no value: inputs, views, what a
compiler folds away.

Source: https://github.com/google-ai-edge/model-explorer/wiki/2.-User-Guide#custom-node-data
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

GRAPH: Final = "graph"
"""What Model Explorer calls the graph of an exported program."""

GRADIENT: Final = ({"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d55e00"})
"""From the least value to the largest: white to vermilion, which differ in lightness too."""


def write_node_data(name: str, values: Mapping[str, float]) -> Iterator[bytes]:
    """Yield node data in JSON: node of the program -> value, under a name for people."""
    results = {node: {"value": value} for node, value in values.items()}
    data = {GRAPH: {"name": name, "results": results, "gradient": GRADIENT}}
    yield (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()
