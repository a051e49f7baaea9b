/*
name = "edp.operator"
record = "EdpOperatorShare"
version = 1
schema = 1
summary = "How a run's energy-delay product spreads over its operators, by part and cumulatively"
grain = "one row per operator; shares sum to the run's energy-delay product"
order = ["share_fraction descending", "operator_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
rank = { type = "BIGINT", meaning = "1 for the largest share" }
operator_index = { type = "INTEGER", meaning = "execution order" }
subgraph_index = { type = "INTEGER", meaning = "subgraph that holds it" }
name = { type = "VARCHAR", meaning = "module path, with the operation where the module holds several" }
operation = { type = "VARCHAR", meaning = "conv2d, relu, add ..." }
kind = { type = "VARCHAR", meaning = "what it is to a mapping model" }
fusion_pattern = { type = "VARCHAR", meaning = "of its subgraph: operations in order" }
is_fused = { type = "BOOLEAN", meaning = "shares its kernel with others" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "E_i, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "E_i" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "t_i, exact: its share of its kernel's latency" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "t_i" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E_i t_i, its own energy x its own latency; does not add up" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
share_fraction = { type = "DOUBLE", meaning = "(E_i / E + t_i / T) / 2: its share of the run's energy-delay product" }
cumulative_fraction = { type = "DOUBLE", meaning = "of this and all larger shares; 1 in the last row" }
compute_share_fraction = { type = "DOUBLE", meaning = "the part of share_fraction that arithmetic takes; time is split as in its subgraph" }
memory_share_fraction = { type = "DOUBLE", meaning = "the part that data movement takes" }
control_share_fraction = { type = "DOUBLE", meaning = "the part that control takes; its time is the fixed cost of kernels" }
static_share_fraction = { type = "DOUBLE", meaning = "the part that static energy takes; it has no time of its own" }
halving_fraction = { type = "DOUBLE", meaning = "of E T that goes if this operator takes half its energy and half its time" }
bottleneck = { type = "VARCHAR", meaning = "of its subgraph: compute, memory or launch" }
*/
WITH part AS (
    SELECT
        o.operator_index,
        o.subgraph_index,
        q.name,
        q.operation,
        q.kind,
        g.pattern,
        r.runtime IN ('fused', 'engine') AND count(*) OVER (PARTITION BY o.subgraph_index) > 1 AS is_fused,
        o.latency_fs,
        least(s.latency_fs, CAST(round(s.launch_s * 1e15) AS BIGINT)) / nullif(CAST(s.latency_fs AS DOUBLE), 0e0)
            AS launch_fraction,
        s.compute_s >= s.memory_s AS is_computing,
        s.bottleneck,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(e.compute_fj, 0) AS compute_fj,
        coalesce(e.memory_fj, 0) AS memory_fj,
        coalesce(e.control_fj, 0) AS control_fj,
        coalesce(e.static_fj, 0) AS static_fj
    FROM run_operator AS o
    JOIN run AS r ON r.run_id = o.run_id
    JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = o.subgraph_index
    JOIN (
        SELECT subgraph_index, latency_fs, launch_s, compute_s, memory_s, bottleneck
        FROM run_subgraph
        WHERE run_id = $run_id
    ) AS s ON s.subgraph_index = o.subgraph_index
    LEFT JOIN (
        SELECT operator_index, energy_fj, compute_fj, memory_fj, control_fj, static_fj
        FROM energy_parts
        WHERE run_id = $run_id
    ) AS e ON e.operator_index = o.operator_index
    WHERE o.run_id = $run_id
),
whole AS (
    SELECT
        nullif(CAST(sum(energy_fj) AS DOUBLE), 0e0) AS energy_fj,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs
    FROM part
),
share AS (
    SELECT
        p.operator_index,
        (CAST(p.energy_fj AS DOUBLE) / w.energy_fj + p.latency_fs / w.latency_fs) / 2e0 AS share_fraction,
        p.latency_fs / w.latency_fs * coalesce(p.launch_fraction, 0e0) AS control_time,
        p.latency_fs / w.latency_fs * (1e0 - coalesce(p.launch_fraction, 0e0)) AS busy_time
    FROM part AS p
    CROSS JOIN whole AS w
)
SELECT
    row_number() OVER by_share AS rank,
    p.operator_index,
    p.subgraph_index,
    p.name,
    p.operation,
    p.kind,
    p.pattern AS fusion_pattern,
    p.is_fused,
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
    (CAST(p.compute_fj AS DOUBLE) / w.energy_fj + CASE WHEN p.is_computing THEN h.busy_time ELSE 0e0 END) / 2e0
        AS compute_share_fraction,
    (CAST(p.memory_fj AS DOUBLE) / w.energy_fj + CASE WHEN p.is_computing THEN 0e0 ELSE h.busy_time END) / 2e0
        AS memory_share_fraction,
    (CAST(p.control_fj AS DOUBLE) / w.energy_fj + h.control_time) / 2e0 AS control_share_fraction,
    CAST(p.static_fj AS DOUBLE) / w.energy_fj / 2e0 AS static_share_fraction,
    h.share_fraction - CAST(p.energy_fj AS DOUBLE) / w.energy_fj * (p.latency_fs / w.latency_fs) / 4e0
        AS halving_fraction,
    p.bottleneck
FROM part AS p
JOIN share AS h ON h.operator_index = p.operator_index
CROSS JOIN whole AS w
WINDOW
    by_share AS (ORDER BY h.share_fraction DESC, p.operator_index),
    running AS (
        ORDER BY h.share_fraction DESC, p.operator_index ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
ORDER BY h.share_fraction DESC, p.operator_index
