/*
record = "RunPair"
summary = "Totals of the two runs of an explanation, or of one subgraph: differences in energy, latency, energy x delay, peak memory"
grain = "one row"
order = ["the only row"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
[columns]
model = { type = "VARCHAR", meaning = "model of A" }
hardware_a = { type = "VARCHAR", meaning = "hardware of A" }
hardware_b = { type = "VARCHAR", meaning = "hardware of B" }
energy_a_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of A, exact" }
energy_b_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of B, exact" }
energy_a_j = { type = "DOUBLE", unit = "J", meaning = "energy of A" }
energy_b_j = { type = "DOUBLE", unit = "J", meaning = "energy of B" }
ratio = { type = "DOUBLE", meaning = "energy of B over that of A" }
latency_a_fs = { type = "HUGEINT", unit = "fs", meaning = "latency of A, exact" }
latency_b_fs = { type = "HUGEINT", unit = "fs", meaning = "latency of B, exact" }
latency_a_s = { type = "DOUBLE", unit = "s", meaning = "latency of A" }
latency_b_s = { type = "DOUBLE", unit = "s", meaning = "latency of B" }
latency_ratio = { type = "DOUBLE", null = true, meaning = "latency of B over that of A" }
edp_a_js = { type = "DOUBLE", unit = "Js", meaning = "energy x latency of A; of a subgraph, its energy x the mean latency of both runs plus its latency x their mean energy, so that B minus A is its part of the difference" }
edp_b_js = { type = "DOUBLE", unit = "Js", meaning = "that of B" }
edp_a_exact = { type = "HUGEINT", meaning = "twice edp_a_js, in fJ fs, exact" }
edp_b_exact = { type = "HUGEINT", meaning = "twice edp_b_js, in fJ fs, exact" }
edp_difference_exact = { type = "HUGEINT", meaning = "twice the difference B minus A, in fJ fs, exact" }
edp_ratio = { type = "DOUBLE", null = true, meaning = "energy x latency of B over that of A" }
memory_a_bytes = { type = "BIGINT", unit = "B", meaning = "peak memory of the whole run A: weights and activations" }
memory_b_bytes = { type = "BIGINT", unit = "B", meaning = "peak memory of B" }
memory_difference_bytes = { type = "BIGINT", unit = "B", meaning = "difference B minus A, exact" }
memory_ratio = { type = "DOUBLE", null = true, meaning = "peak memory of B over that of A" }
mac_count_a = { type = "BIGINT", meaning = "multiply-accumulates of the model, or of the subgraph, in A" }
mac_count_b = { type = "BIGINT", meaning = "multiply-accumulates in B" }
units_used_a = { type = "INTEGER", null = true, meaning = "units of A with work in the fullest wave of the subgraph; null for whole runs" }
units_used_b = { type = "INTEGER", null = true, meaning = "units of B with work in the fullest wave" }
units_total_a = { type = "INTEGER", null = true, meaning = "units of A; null for whole runs" }
units_total_b = { type = "INTEGER", null = true, meaning = "units of B" }
unit_name_a = { type = "VARCHAR", null = true, meaning = "name of one unit of A; null for whole runs" }
unit_name_b = { type = "VARCHAR", null = true, meaning = "name of one unit of B" }
energy_probability = { type = "DOUBLE", null = true, meaning = "probability that the run predicted to need less energy per inference does; null for a subgraph, and for runs at different batches" }
latency_probability = { type = "DOUBLE", null = true, meaning = "probability that the run predicted to have less latency does; null for a subgraph, and for runs at different batches" }
edp_probability = { type = "DOUBLE", null = true, meaning = "probability that the run predicted to have less energy x delay per inference does; null for a subgraph, and for runs at different batches" }
architecture_a = { type = "VARCHAR", meaning = "architecture class of A" }
architecture_b = { type = "VARCHAR", meaning = "architecture class of B" }
batch = { type = "INTEGER", meaning = "samples in one input of A" }
precision = { type = "VARCHAR", meaning = "precision of A; bf16/int4 if weights of GEMMs are stored at another precision" }
runtime = { type = "VARCHAR", meaning = "runtime of A" }
run_a = { type = "INTEGER", meaning = "number of run A" }
run_b = { type = "INTEGER", meaning = "number of run B" }
*/
WITH total AS (
    SELECT
        coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_a), 0) AS energy_a_fj,
        coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_b), 0) AS energy_b_fj,
        coalesce(sum(latency_fs) FILTER (WHERE run_id = $run_a), 0) AS latency_a_fs,
        coalesce(sum(latency_fs) FILTER (WHERE run_id = $run_b), 0) AS latency_b_fs,
        CAST(coalesce(sum(mac_count) FILTER (WHERE run_id = $run_a), 0) AS BIGINT) AS mac_count_a,
        CAST(coalesce(sum(mac_count) FILTER (WHERE run_id = $run_b), 0) AS BIGINT) AS mac_count_b,
        max({'used': units_used_count, 'total': units_total_count, 'name': unit_name})
            FILTER (WHERE run_id = $run_a AND $subgraph <> '') AS units_a,
        max({'used': units_used_count, 'total': units_total_count, 'name': unit_name})
            FILTER (WHERE run_id = $run_b AND $subgraph <> '') AS units_b
    FROM cube.part(run_ids := [$run_a, $run_b], energy := 'whole')
    WHERE $subgraph IN ('', name)
),
-- twice energy x delay of a run; of a subgraph, its energy at the mean time of both runs and its time at their mean energy
product AS (
    SELECT
        CASE WHEN $subgraph = '' THEN 2 * t.energy_a_fj * t.latency_a_fs
            ELSE t.energy_a_fj * w.energy_weight + t.latency_a_fs * w.time_weight END AS edp_a_exact,
        CASE WHEN $subgraph = '' THEN 2 * t.energy_b_fj * t.latency_b_fs
            ELSE t.energy_b_fj * w.energy_weight + t.latency_b_fs * w.time_weight END AS edp_b_exact
    FROM total AS t
    CROSS JOIN cube.weight(run_a := $run_a, run_b := $run_b) AS w
),
pair AS (
    SELECT
        a.run_id,
        b.run_id AS other_run_id,
        unnest([
            {'metric': 'energy_per_inference', 'better_ratio': b.energy_per_inference_j / a.energy_per_inference_j},
            {'metric': 'latency', 'better_ratio': b.latency_s / nullif(a.latency_s, 0e0)},
            {'metric': 'edp_per_inference', 'better_ratio': b.edp_per_inference_js / nullif(a.edp_per_inference_js, 0e0)}
        ], recursive := TRUE)
    FROM runs AS a
    JOIN runs AS b ON b.run_id = $run_b AND b.run_id <> a.run_id
    JOIN internal.workload AS v ON v.workload_id = a.workload_id
    JOIN internal.workload AS w ON w.workload_id = b.workload_id AND w.source = v.source
    WHERE a.run_id = $run_a
),
difference AS (FROM numpy.differences_of(pair)),
chance AS (
    SELECT
        max(greatest(probability_better, 1e0 - probability_better)) FILTER (metric = 'energy_per_inference') AS energy,
        max(greatest(probability_better, 1e0 - probability_better)) FILTER (metric = 'latency') AS latency,
        max(greatest(probability_better, 1e0 - probability_better)) FILTER (metric = 'edp_per_inference') AS edp
    FROM difference
)
SELECT
    a.model,
    a.configured_hardware AS hardware_a,
    b.configured_hardware AS hardware_b,
    t.energy_a_fj,
    t.energy_b_fj,
    t.energy_b_fj - t.energy_a_fj AS difference_fj,
    joules(t.energy_a_fj) AS energy_a_j,
    joules(t.energy_b_fj) AS energy_b_j,
    joules(t.energy_b_fj - t.energy_a_fj) AS difference_j,
    CAST(t.energy_b_fj AS DOUBLE) / CAST(t.energy_a_fj AS DOUBLE) AS ratio,
    t.latency_a_fs,
    t.latency_b_fs,
    t.latency_b_fs - t.latency_a_fs AS latency_difference_fs,
    seconds(t.latency_a_fs) AS latency_a_s,
    seconds(t.latency_b_fs) AS latency_b_s,
    fraction(t.latency_b_fs, t.latency_a_fs) AS latency_ratio,
    CAST(e.edp_a_exact AS DOUBLE) / 2e30 AS edp_a_js,
    CAST(e.edp_b_exact AS DOUBLE) / 2e30 AS edp_b_js,
    e.edp_a_exact,
    e.edp_b_exact,
    e.edp_b_exact - e.edp_a_exact AS edp_difference_exact,
    fraction(e.edp_b_exact, e.edp_a_exact) AS edp_ratio,
    a.peak_memory_bytes AS memory_a_bytes,
    b.peak_memory_bytes AS memory_b_bytes,
    b.peak_memory_bytes - a.peak_memory_bytes AS memory_difference_bytes,
    b.peak_memory_bytes / nullif(CAST(a.peak_memory_bytes AS DOUBLE), 0e0)
        AS memory_ratio,
    t.mac_count_a,
    t.mac_count_b,
    t.units_a.used AS units_used_a,
    t.units_b.used AS units_used_b,
    t.units_a.total AS units_total_a,
    t.units_b.total AS units_total_b,
    t.units_a.name AS unit_name_a,
    t.units_b.name AS unit_name_b,
    CASE WHEN $subgraph = '' AND a.batch = b.batch THEN c.energy END AS energy_probability,
    CASE WHEN $subgraph = '' AND a.batch = b.batch THEN c.latency END AS latency_probability,
    CASE WHEN $subgraph = '' AND a.batch = b.batch THEN c.edp END AS edp_probability,
    a.architecture AS architecture_a,
    b.architecture AS architecture_b,
    a.batch,
    a.precision_label AS "precision",
    a.runtime,
    a.run_id AS run_a,
    b.run_id AS run_b
FROM total AS t
CROSS JOIN product AS e
CROSS JOIN chance AS c
JOIN run_configurations AS a ON a.run_id = $run_a
JOIN run_configurations AS b ON b.run_id = $run_b
ORDER BY a.run_id
