"""The one pipeline: workload x hardware x configuration to a run, with its ledger."""

from joulemap.evaluate.pipeline import evaluate

__all__ = ["evaluate"]
