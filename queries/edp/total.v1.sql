/*
record = "EdpTotal"
summary = "Energy-delay product of a run by part, and the sum of the EDPs of its subgraphs"
grain = "one row"
[parameters]
run_id = { type = "INTEGER", meaning = "an evaluated run" }
[columns]
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "E, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "E, per batch" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "T, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "T, per batch" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E T" }
own_edp_js = { type = "DOUBLE", unit = "Js", meaning = "sum of E_i t_i over the subgraphs; less than E T, because products of different subgraphs are missing" }
own_edp_fraction = { type = "DOUBLE", meaning = "own_edp_js over E T" }
compute_share_fraction = { type = "DOUBLE", meaning = "share of E T that arithmetic takes: half its energy over E, half its time over T" }
memory_share_fraction = { type = "DOUBLE", meaning = "share of E T that data movement takes" }
control_share_fraction = { type = "DOUBLE", meaning = "share of E T that control takes; its time is the fixed cost of kernels" }
static_share_fraction = { type = "DOUBLE", meaning = "share of E T that static energy takes; the four add up to 1" }
static_energy_fraction = { type = "DOUBLE", meaning = "share of E that is static power x the time from one batch to the next" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs that run" }
operator_count = { type = "BIGINT", meaning = "operators that run" }
alone_count = { type = "BIGINT", meaning = "subgraphs of one operator" }
alone_share_fraction = { type = "DOUBLE", meaning = "share of E T that subgraphs of one operator take" }
separate_energy_j = { type = "DOUBLE", unit = "J", meaning = "separate energy of all operators as kernels of their own, without host launches" }
separate_latency_s = { type = "DOUBLE", unit = "s", meaning = "separate latency of all operators as kernels of their own, without host launches" }
separate_edp_js = { type = "DOUBLE", unit = "Js", meaning = "product of separate energy and latency" }
clock_fraction = { type = "DOUBLE", meaning = "share of the full clock; below 1 where the power cap lowers it" }
*/
WITH whole AS (
    SELECT
        sum(energy_fj) AS energy_fj,
        sum(latency_fs) AS latency_fs,
        fraction(sum(static_fj), sum(energy_fj)) AS static_energy_fraction,
        sum(edp_js ORDER BY part_index) AS own_edp_js,
        sum(compute_share_fraction ORDER BY part_index) AS compute_share_fraction,
        sum(memory_share_fraction ORDER BY part_index) AS memory_share_fraction,
        sum(control_share_fraction ORDER BY part_index) AS control_share_fraction,
        sum(static_share_fraction ORDER BY part_index) AS static_share_fraction,
        count(*) AS subgraph_count,
        CAST(sum(operator_count) AS BIGINT) AS operator_count,
        count(*) FILTER (WHERE operator_count = 1) AS alone_count,
        coalesce(sum(edp_share_fraction ORDER BY part_index) FILTER (WHERE operator_count = 1), 0e0)
            AS alone_share_fraction
    FROM cube.part(run_ids := [$run_id])
),
alone AS (
    SELECT joules(sum(separate_energy_fj)) AS energy_j, seconds(sum(separate_latency_fs)) AS latency_s
    FROM internal.run_operator
    WHERE run_id = $run_id
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    r.architecture,
    r.batch,
    r.precision_label AS "precision",
    r.runtime,
    r.is_projection,
    w.energy_fj,
    joules(w.energy_fj) AS energy_j,
    w.latency_fs,
    seconds(w.latency_fs) AS latency_s,
    joules(w.energy_fj) * seconds(w.latency_fs) AS edp_js,
    w.own_edp_js,
    w.own_edp_js / (joules(w.energy_fj) * seconds(w.latency_fs)) AS own_edp_fraction,
    w.compute_share_fraction,
    w.memory_share_fraction,
    w.control_share_fraction,
    w.static_share_fraction,
    w.static_energy_fraction,
    w.subgraph_count,
    w.operator_count,
    w.alone_count,
    w.alone_share_fraction,
    a.energy_j AS separate_energy_j,
    a.latency_s AS separate_latency_s,
    a.energy_j * a.latency_s AS separate_edp_js,
    r.clock_fraction,
    r.run_id
FROM run_configurations AS r
JOIN whole AS w ON w.energy_fj IS NOT NULL
CROSS JOIN alone AS a
WHERE r.run_id = $run_id AND r.refusal IS NULL
ORDER BY r.run_id
