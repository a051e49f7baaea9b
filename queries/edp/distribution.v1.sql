/*
name = "edp.distribution"
record = "EdpShare"
version = 1
schema = 1
summary = "How a run's energy-delay product spreads over its subgraphs, by part and cumulatively"
grain = "one row per subgraph; shares sum to the run's energy-delay product"
order = ["share_fraction descending", "subgraph_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
rank = { type = "BIGINT", meaning = "1 for the largest share" }
subgraph_index = { type = "INTEGER", meaning = "subgraph" }
name = { type = "VARCHAR", meaning = "operator that leads it" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
operator_count = { type = "BIGINT", meaning = "operators that run" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "E_i, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "E_i" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "t_i, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "t_i" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E_i t_i, its own energy x its own latency; does not add up" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
share_fraction = { type = "DOUBLE", meaning = "(E_i / E + t_i / T) / 2: its share of the run's energy-delay product" }
cumulative_fraction = { type = "DOUBLE", meaning = "of this and all larger shares; 1 in the last row" }
compute_share_fraction = { type = "DOUBLE", meaning = "the part of share_fraction that arithmetic takes: half its energy over E, half its time over T" }
memory_share_fraction = { type = "DOUBLE", meaning = "the part that data movement takes" }
control_share_fraction = { type = "DOUBLE", meaning = "the part that control takes; its time is the fixed cost of kernels" }
static_share_fraction = { type = "DOUBLE", meaning = "the part that static energy takes; it has no time of its own" }
halving_fraction = { type = "DOUBLE", meaning = "of E T that goes if this subgraph takes half its energy and half its time" }
bottleneck = { type = "VARCHAR", meaning = "compute, memory or launch" }
*/
WITH energy AS (
    SELECT
        subgraph_index,
        sum(energy_fj) AS energy_fj,
        sum(compute_fj) AS compute_fj,
        sum(memory_fj) AS memory_fj,
        sum(control_fj) AS control_fj,
        sum(static_fj) AS static_fj
    FROM energy_parts
    WHERE run_id = $run_id
    GROUP BY subgraph_index
),
part AS (
    SELECT
        s.subgraph_index,
        g.name,
        g.pattern,
        (SELECT count(*) FROM run_operator AS o WHERE o.run_id = $run_id AND o.subgraph_index = s.subgraph_index)
            AS operator_count,
        s.latency_fs,
        least(s.latency_fs, CAST(round(s.launch_s * 1e15) AS BIGINT)) AS launch_fs,
        s.compute_s >= s.memory_s AS is_computing,
        s.bottleneck,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(e.compute_fj, 0) AS compute_fj,
        coalesce(e.memory_fj, 0) AS memory_fj,
        coalesce(e.control_fj, 0) AS control_fj,
        coalesce(e.static_fj, 0) AS static_fj
    FROM run_subgraph AS s
    JOIN run AS r ON r.run_id = s.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
    LEFT JOIN energy AS e ON e.subgraph_index = s.subgraph_index
    WHERE s.run_id = $run_id
),
whole AS (
    SELECT
        nullif(CAST(sum(energy_fj) AS DOUBLE), 0e0) AS energy_fj,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs
    FROM part
),
share AS (
    SELECT
        p.subgraph_index,
        (CAST(p.energy_fj AS DOUBLE) / w.energy_fj + p.latency_fs / w.latency_fs) / 2e0 AS share_fraction
    FROM part AS p
    CROSS JOIN whole AS w
)
SELECT
    row_number() OVER by_share AS rank,
    p.subgraph_index,
    p.name,
    p.pattern AS fusion_pattern,
    p.operator_count,
    p.energy_fj,
    joules(p.energy_fj) AS energy_j,
    p.latency_fs,
    seconds(p.latency_fs) AS latency_s,
    joules(p.energy_fj) * seconds(p.latency_fs) AS edp_js,
    edp_share(p.energy_fj, p.latency_fs, w.energy_fj, w.latency_fs) AS edp_share_js,
    h.share_fraction,
    (
        CAST(sum(p.energy_fj) OVER running AS DOUBLE) / w.energy_fj
        + CAST(sum(p.latency_fs) OVER running AS DOUBLE) / w.latency_fs
    ) / 2e0 AS cumulative_fraction,
    (
        CAST(p.compute_fj AS DOUBLE) / w.energy_fj
        + CASE WHEN p.is_computing THEN p.latency_fs - p.launch_fs ELSE 0 END / w.latency_fs
    ) / 2e0 AS compute_share_fraction,
    (
        CAST(p.memory_fj AS DOUBLE) / w.energy_fj
        + CASE WHEN p.is_computing THEN 0 ELSE p.latency_fs - p.launch_fs END / w.latency_fs
    ) / 2e0 AS memory_share_fraction,
    (CAST(p.control_fj AS DOUBLE) / w.energy_fj + p.launch_fs / w.latency_fs) / 2e0 AS control_share_fraction,
    CAST(p.static_fj AS DOUBLE) / w.energy_fj / 2e0 AS static_share_fraction,
    h.share_fraction - CAST(p.energy_fj AS DOUBLE) / w.energy_fj * (p.latency_fs / w.latency_fs) / 4e0
        AS halving_fraction,
    p.bottleneck
FROM part AS p
JOIN share AS h ON h.subgraph_index = p.subgraph_index
CROSS JOIN whole AS w
WINDOW
    by_share AS (ORDER BY h.share_fraction DESC, p.subgraph_index),
    running AS (
        ORDER BY h.share_fraction DESC, p.subgraph_index ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
ORDER BY h.share_fraction DESC, p.subgraph_index
