"""The one pipeline: workload x hardware x configuration to a run, with its ledger."""

from joulemap.evaluate.pipeline import Evaluator, evaluate

__all__ = ["Evaluator", "evaluate"]
