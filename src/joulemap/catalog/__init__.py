"""The numbers: hardware targets and energy reference tables, read from data files.

`data/hardware/*.toml` holds one target each, `data/architecture/*.toml` the coefficients and energies per
action of one architecture class at their reference process node. A target is resolved against its class here:
prices are scaled to its node, overrides applied, and everything it was made from goes into its digest.
"""

from joulemap.catalog.load import Catalogue, catalogue_digest, load_catalogue
from joulemap.catalog.model import ModelEntry, load_models
from joulemap.catalog.scale import node_factor

__all__ = ["Catalogue", "ModelEntry", "catalogue_digest", "load_catalogue", "load_models", "node_factor"]
