/*
name = "analyze.operator"
record = "OperatorShare"
version = 1
schema = 1
summary = "A run operator by operator: energy by part, latency, share, and what fusing it saves"
grain = "one row per operator; energies and latencies sum to the run, exactly"
order = ["operator_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
operator_index = { type = "INTEGER", meaning = "execution order" }
subgraph_index = { type = "INTEGER", meaning = "subgraph that holds it" }
name = { type = "VARCHAR", meaning = "module path, with the operation where the module holds several" }
operation = { type = "VARCHAR", meaning = "conv2d, relu, add ..." }
kind = { type = "VARCHAR", meaning = "what it is to a mapping model" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
compute_energy_j = { type = "DOUBLE", unit = "J", meaning = "of arithmetic and its registers" }
memory_energy_j = { type = "DOUBLE", unit = "J", meaning = "of moving and keeping data" }
control_energy_j = { type = "DOUBLE", unit = "J", meaning = "of deciding what happens next, and of what regulators lose" }
static_energy_j = { type = "DOUBLE", unit = "J", meaning = "static power x the time from one batch to the next" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the run's energy" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "its share of its kernel's latency" }
latency_fraction = { type = "DOUBLE", null = true, meaning = "of the run's latency" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
edp_share_fraction = { type = "DOUBLE", null = true, meaning = "of the run's energy-delay product" }
is_fused = { type = "BOOLEAN", meaning = "shares its kernel with others" }
separate_energy_j = { type = "DOUBLE", unit = "J", meaning = "as a kernel of its own, static energy included" }
separate_latency_s = { type = "DOUBLE", unit = "s", meaning = "as a kernel of its own" }
saved_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "what fusing it saves: separate minus own; null where it is not fused" }
saved_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "what fusing it saves: separate minus own; null where it is not fused" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written again by passes that the runtime adds" }
bias_addition_count = { type = "BIGINT", meaning = "additions of its bias; 0 without one" }
bias_element_count = { type = "BIGINT", meaning = "elements of its bias" }
*/
WITH energy AS (
    SELECT operator_index, sum(energy_fj) AS energy_fj
    FROM ledger_line
    WHERE run_id = $run_id
    GROUP BY operator_index
)
SELECT
    o.operator_index,
    o.subgraph_index,
    o.name,
    o.operation,
    o.kind,
    o.mac_count,
    coalesce(e.energy_fj, 0) AS energy_fj,
    o.energy_j,
    o.compute_energy_j,
    o.memory_energy_j,
    o.control_energy_j,
    o.static_energy_j,
    fraction(coalesce(e.energy_fj, 0), sum(e.energy_fj) OVER ()) AS share_fraction,
    t.latency_fs,
    o.latency_s,
    t.latency_fs / nullif(CAST(sum(t.latency_fs) OVER () AS DOUBLE), 0e0) AS latency_fraction,
    o.edp_share_js,
    (
        fraction(coalesce(e.energy_fj, 0), sum(e.energy_fj) OVER ())
        + t.latency_fs / nullif(CAST(sum(t.latency_fs) OVER () AS DOUBLE), 0e0)
    ) / 2e0 AS edp_share_fraction,
    o.is_fused,
    o.separate_energy_j,
    o.separate_latency_s,
    CASE WHEN o.is_fused THEN o.separate_energy_j - o.energy_j END AS saved_energy_j,
    CASE WHEN o.is_fused THEN o.separate_latency_s - o.latency_s END AS saved_latency_s,
    o.dram_bytes,
    o.pass_bytes,
    o.bias_addition_count,
    o.bias_element_count
FROM operator_results AS o
JOIN run_operator AS t ON t.run_id = o.run_id AND t.operator_index = o.operator_index
LEFT JOIN energy AS e ON e.operator_index = o.operator_index
WHERE o.run_id = $run_id
ORDER BY o.operator_index
