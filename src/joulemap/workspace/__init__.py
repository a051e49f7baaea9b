"""A database and how to answer from it: find the stored workload or trace, evaluate what is missing, write, query."""

from joulemap.workspace.answer import CompareAnswer, DatabaseInfo, ExplainAnswer
from joulemap.workspace.workspace import Workspace

__all__ = ["CompareAnswer", "DatabaseInfo", "ExplainAnswer", "Workspace"]
