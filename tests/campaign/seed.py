"""Statements and models to begin from: right ones, and those that someone once got wrong."""

from __future__ import annotations

from typing import Final

STATEMENTS: Final = (
    "SELECT hardware, energy_j, latency_s FROM runs ORDER BY energy_j",
    "SELECT category, sum(line_energy_j) FROM energy_ledger WHERE run_id = 1 GROUP BY ALL",
    "SELECT hardware, energy_j FROM runs WHERE model = $model AND batch = $batch",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 100) SELECT max(n) FROM t",
    "SELECT list(struct_pack(a := run_id, b := [hardware])) FROM runs",
    "SELECT now(), today(), current_timestamp, TIMESTAMPTZ '2024-01-01 00:00:00+02', INTERVAL 1 MONTH",
    "SELECT 'a'::BLOB, uuid(), 1::HUGEINT * 1e18, 1/0, -1/0, 0/0, 'inf'::DOUBLE, MAP {'a': 1}, {'k': NULL}",
    "SELECT * FROM read_csv('/etc/passwd')",
    "COPY runs TO 'stolen.csv'",
    "ATTACH 'other.duckdb'",
    "PRAGMA database_list",
    "UPDATE EXTENSIONS",
    "INSTALL httpfs",
    "SET memory_limit = '1GB'",
    "CREATE TABLE t AS SELECT 1",
    "DROP TABLE run",
    "DELETE FROM run",
    "SELECT 1; SELECT 2",
    "EXPLAIN ANALYZE SELECT count(*) FROM runs",
    "SUMMARIZE runs",
    "DESCRIBE runs",
    "PIVOT runs ON hardware USING sum(energy_j)",
    "SELECT unnest([1, 2, 3]), unnest({'a': 1})",
    "SELECT repeat('x', 100000)",
    "SELECT chr(27) || '[31mred' AS \"\x1b[31m\"",
    "SELECT error('no')",
    "SELECT getenv('HOME')",
    "CALL pragma_version()",
    "VALUES (1, 'a'), (2, NULL)",
    "FROM runs",
)

SEQUENCE: Final = """\
import torch


def make():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
"""

CONVOLUTION: Final = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv(x).relu()


make = Net
"""

RAISING: Final = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        raise {error}


make = Net
"""

MEDDLING: Final = """\
import os, sys
import torch


def make(width=4):
    {deed}
    return torch.nn.Linear(width, width)
"""

MODELS: Final = (SEQUENCE, CONVOLUTION, RAISING, MEDDLING)

ERRORS: Final = (
    "SystemExit(0)",
    "SystemExit('x')",
    "GeneratorExit",
    "KeyboardInterrupt",
    "ValueError('\\x1b[31m')",
    "MemoryError",
    "RecursionError",
    "StopIteration",
    "type('Own', (BaseException,), {})('no')",
    "OSError(28, 'full')",
    "ValueError()",
)

DEEDS: Final = (
    "os.chdir('/')",
    "sys.stdout.close()",
    "print('noise')",
    "os.write(1, b'noise')",
    "import builtins; del builtins.print",
    "sys.stderr.write('noise\\n')",
    "return None",
    "return 3",
    "os.environ.clear()",
    "sys.setrecursionlimit(60)",
    "torch.set_default_dtype(torch.float64)",
    "sys.path.clear()",
    "width = -1",
    "import nothing_of_this_name",
)
