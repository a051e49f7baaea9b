"""The formats an answer is written in; imports nothing, because `--help` lists them."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


class TableFormat(StrEnum):
    """How an answer that is one table is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    PARQUET = "parquet"


class ArchiveFormat(StrEnum):
    """What runs are exported as: Parquet holds all of them and is read back, the others are for other programs."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
