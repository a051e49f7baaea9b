"""How each architecture class places a subgraph, how long it takes, and which actions it emits.

One module per class, each with an `ARCHITECTURE` that satisfies `contract.Architecture`; a new class is one new
file here and one data file in the catalogue.
"""

from joulemap.model.architecture.contract import Architecture, find_architecture

__all__ = ["Architecture", "find_architecture"]
