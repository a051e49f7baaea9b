"""Content of a database and a folder, and its comparison with the expected content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from joulemap.workspace import Workspace

Content = dict[str, str]
"""Key of a run or of a stored row -> digest of its content."""

CONTENT: Final = """
WITH subgraphs AS (
    SELECT run_id, count(*) AS row_count, sum(latency_fs) AS total,
        bit_xor(hash(subgraph_index, latency_fs, moved_bytes, units_used_count, bottleneck)) AS digest
    FROM internal.run_subgraph GROUP BY run_id
), operators AS (
    SELECT run_id, count(*) AS row_count, sum(latency_fs) AS total,
        bit_xor(hash(subgraph_index, operator_index, latency_fs, moved_bytes, separate_energy_fj)) AS digest
    FROM internal.run_operator GROUP BY run_id
), lines AS (
    SELECT run_id, count(*) AS row_count, sum(energy_fj) AS total,
        bit_xor(hash(subgraph_index, operator_index, component, action, action_count, energy_fj)) AS digest
    FROM internal.ledger_line JOIN internal.action USING (action_id) GROUP BY run_id
), works AS (
    SELECT workload_id, count(*) AS row_count, bit_xor(hash(operator_index, operation, mac_count)) AS digest
    FROM internal.workload_operator GROUP BY workload_id
), facts AS (
    SELECT hardware_digest, count(*) AS row_count, bit_xor(hash(quantity, value, unit)) AS digest
    FROM internal.hardware_fact GROUP BY hardware_digest
)
SELECT r.run_key AS key,
    concat_ws('|', w.workload_key, r.hardware_digest, r.power_mode, r.precision, r.batch, r.runtime, r.refusal,
        r.weight_bytes, r.activation_bytes, r.clock_fraction,
        s.row_count, s.total, s.digest, o.row_count, o.total, o.digest, l.row_count, l.total, l.digest,
        k.row_count, k.digest, f.row_count, f.digest) AS digest
FROM internal.run AS r
LEFT JOIN internal.workload AS w USING (workload_id)
LEFT JOIN subgraphs AS s USING (run_id)
LEFT JOIN operators AS o USING (run_id)
LEFT JOIN lines AS l USING (run_id)
LEFT JOIN works AS k USING (workload_id)
LEFT JOIN facts AS f USING (hardware_digest)
UNION ALL
SELECT concat_ws(' ', 'measured', hardware, model, precision, batch, runtime), concat_ws('|', latency_s, source)
FROM internal.measurement WHERE source = 'campaign'
ORDER BY key
"""


def read_content(path: Path) -> Content:
    """Return the content of a database; empty if it does not exist.

    Raise the errors of a query.
    """
    if not path.exists():
        return {}
    return {row["key"]: row["digest"] for row in Workspace(path).sql(CONTENT).records()}


def list_files(place: Path) -> list[str]:
    """Return the names of all files and empty folders below a place."""
    paths = []
    for path in sorted(place.rglob("*")):
        is_folder = path.is_dir() and not path.is_symlink()
        if not is_folder or not any(path.iterdir()):
            paths.append(f"{path.relative_to(place)}{'/' if is_folder else ''}")
    return paths


def compare_content(
    stored: Mapping[str, str], promised: Sequence[Mapping[str, str]], possible: Mapping[str, str]
) -> list[str]:
    """Return the failures: lost or changed `promised` content, and content that is neither promised nor `possible`."""
    must = {key: digest for content in promised for key, digest in content.items()}
    lost = sorted(set(must) - set(stored))
    broken = sorted(key for key in stored if key in must and stored[key] != must[key])
    partial = sorted(key for key in stored if key not in must and stored[key] != possible.get(key))
    failures = []
    for word, keys in (("lost", lost), ("changed", broken), ("partial", partial)):
        if keys:
            failures.append(f"{word}: {len(keys)} of {len(must)} stored, {keys[0]} first")
    return failures
