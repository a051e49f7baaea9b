"""Versioned questions: load a query file, check its contract, run it, return typed rows."""

from joulemap.query.contract import Column, Parameter, Query
from joulemap.query.load import find_query, list_queries
from joulemap.query.run import Answer, fetch, run_query, run_sql

__all__ = [
    "Answer",
    "Column",
    "Parameter",
    "Query",
    "fetch",
    "find_query",
    "list_queries",
    "run_query",
    "run_sql",
]
