/*
name = "edp.total"
record = "EdpTotal"
version = 1
schema = 1
summary = "A run's energy-delay product by part, and what is left of it where its subgraphs' own products are added"
grain = "one row"
order = ["run_id"]
[parameters]
run_id = { type = "INTEGER", meaning = "an evaluated run" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
batch = { type = "INTEGER", meaning = "samples in one input" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "E, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "E, per batch" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "T, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "T, per batch" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E T" }
own_edp_js = { type = "DOUBLE", unit = "Js", meaning = "sum of E_i t_i over the subgraphs: less than E T, which is no sum of them" }
own_edp_fraction = { type = "DOUBLE", meaning = "of E T" }
compute_share_fraction = { type = "DOUBLE", meaning = "of E T that arithmetic takes: half its energy over E, half its time over T" }
memory_share_fraction = { type = "DOUBLE", meaning = "of E T that data movement takes" }
control_share_fraction = { type = "DOUBLE", meaning = "of E T that control takes; its time is the fixed cost of kernels" }
static_share_fraction = { type = "DOUBLE", meaning = "of E T that static energy takes; the four add up to 1" }
static_energy_fraction = { type = "DOUBLE", meaning = "of E that is static power x the time from one batch to the next" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs that run" }
operator_count = { type = "BIGINT", meaning = "operators that run" }
alone_count = { type = "BIGINT", meaning = "subgraphs of one operator" }
alone_share_fraction = { type = "DOUBLE", meaning = "of E T that they take" }
separate_energy_j = { type = "DOUBLE", unit = "J", meaning = "of all operators as kernels of their own, without host launches" }
separate_latency_s = { type = "DOUBLE", unit = "s", meaning = "of all operators as kernels of their own, without host launches" }
separate_edp_js = { type = "DOUBLE", unit = "Js", meaning = "product of the two" }
clock_fraction = { type = "DOUBLE", meaning = "of the full clock; below 1 where the power cap gives way" }
run_id = { type = "INTEGER", meaning = "number of the run" }
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
work AS (
    SELECT
        subgraph_index,
        count(*) AS operator_count,
        sum(separate_energy_fj) AS separate_fj,
        sum(separate_latency_fs) AS separate_fs
    FROM run_operator
    WHERE run_id = $run_id
    GROUP BY subgraph_index
),
part AS (
    SELECT
        s.subgraph_index,
        s.latency_fs,
        least(s.latency_fs, CAST(round(s.launch_s * 1e15) AS BIGINT)) AS launch_fs,
        s.compute_s >= s.memory_s AS is_computing,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(e.compute_fj, 0) AS compute_fj,
        coalesce(e.memory_fj, 0) AS memory_fj,
        coalesce(e.control_fj, 0) AS control_fj,
        coalesce(e.static_fj, 0) AS static_fj,
        coalesce(w.operator_count, 0) AS operator_count,
        w.separate_fj,
        w.separate_fs
    FROM run_subgraph AS s
    LEFT JOIN energy AS e ON e.subgraph_index = s.subgraph_index
    LEFT JOIN work AS w ON w.subgraph_index = s.subgraph_index
    WHERE s.run_id = $run_id
),
whole AS (
    SELECT
        sum(energy_fj) AS energy_fj,
        sum(latency_fs) AS latency_fs,
        nullif(CAST(sum(energy_fj) AS DOUBLE), 0e0) AS e,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS t,
        CAST(sum(compute_fj) AS DOUBLE) AS compute_fj,
        CAST(sum(memory_fj) AS DOUBLE) AS memory_fj,
        CAST(sum(control_fj) AS DOUBLE) AS control_fj,
        CAST(sum(static_fj) AS DOUBLE) AS static_fj,
        CAST(sum(launch_fs) AS DOUBLE) AS launch_fs,
        CAST(sum(CASE WHEN is_computing THEN latency_fs - launch_fs ELSE 0 END) AS DOUBLE) AS compute_fs,
        CAST(sum(CASE WHEN is_computing THEN 0 ELSE latency_fs - launch_fs END) AS DOUBLE) AS memory_fs,
        sum(joules(energy_fj) * seconds(latency_fs) ORDER BY subgraph_index) AS own_edp_js,
        count(*) AS subgraph_count,
        CAST(sum(operator_count) AS BIGINT) AS operator_count,
        count(*) FILTER (WHERE operator_count = 1) AS alone_count,
        CAST(sum(CASE WHEN operator_count = 1 THEN energy_fj ELSE 0 END) AS DOUBLE) AS alone_fj,
        CAST(sum(CASE WHEN operator_count = 1 THEN latency_fs ELSE 0 END) AS DOUBLE) AS alone_fs,
        joules(sum(separate_fj)) AS separate_energy_j,
        seconds(sum(separate_fs)) AS separate_latency_s
    FROM part
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    r.architecture,
    r.batch,
    precision_label(r.precision, r.weight_precision) AS "precision",
    r.runtime,
    r.is_projection,
    w.energy_fj,
    joules(w.energy_fj) AS energy_j,
    w.latency_fs,
    w.t / 1e15 AS latency_s,
    joules(w.energy_fj) * (w.t / 1e15) AS edp_js,
    w.own_edp_js,
    w.own_edp_js / (w.e / 1e15 * (w.t / 1e15)) AS own_edp_fraction,
    (w.compute_fj / w.e + w.compute_fs / w.t) / 2e0 AS compute_share_fraction,
    (w.memory_fj / w.e + w.memory_fs / w.t) / 2e0 AS memory_share_fraction,
    (w.control_fj / w.e + w.launch_fs / w.t) / 2e0 AS control_share_fraction,
    w.static_fj / w.e / 2e0 AS static_share_fraction,
    w.static_fj / w.e AS static_energy_fraction,
    w.subgraph_count,
    w.operator_count,
    w.alone_count,
    (w.alone_fj / w.e + w.alone_fs / w.t) / 2e0 AS alone_share_fraction,
    w.separate_energy_j,
    w.separate_latency_s,
    w.separate_energy_j * w.separate_latency_s AS separate_edp_js,
    r.clock_fraction,
    r.run_id
FROM run_configurations AS r
JOIN whole AS w ON w.energy_fj IS NOT NULL
WHERE r.run_id = $run_id AND r.refusal IS NULL
ORDER BY r.run_id
