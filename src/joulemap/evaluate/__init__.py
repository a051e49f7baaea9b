"""The one pipeline: workload x hardware x configuration to a run, with its ledger."""

from joulemap.evaluate.pipeline import evaluate
from joulemap.evaluate.result import RunColumns

__all__ = ["RunColumns", "evaluate"]
