/*
record = "SubgraphDifference"
summary = "Differences of two runs by subgraph"
grain = "one row per subgraph of either run, matched by name; energies, times and shares sum to the difference, exactly"
order = ["absolute difference of the metric descending", "name"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "metric of difference_fraction and of the order: energy, latency, edp or memory" }
[columns]
name = { heading = "subgraph", type = "VARCHAR", meaning = "operator that leads the subgraph" }
fusion_pattern = { heading = "pattern", type = "VARCHAR", meaning = "operations in order" }
energy_a_fj = { heading = "energy A", type = "HUGEINT", unit = "fJ", meaning = "exact energy on A; 0 where A has no such subgraph" }
energy_b_fj = { heading = "energy B", type = "HUGEINT", unit = "fJ", meaning = "exact energy on B; 0 where B has no such subgraph" }
latency_a_fs = { heading = "latency A", type = "HUGEINT", unit = "fs", meaning = "exact latency on A" }
edp_difference_exact = { type = "HUGEINT", meaning = "exact contribution to twice the difference of E T, in fJ fs: energy difference x (T of A + T of B) + time difference x (E of A + E of B)" }
memory_a_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes moved off chip on A" }
memory_b_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes moved off chip on B" }
difference = { shown = "+", type = "DOUBLE", meaning = "difference of the metric, B minus A, in unit" }
unit = { heading = "status", type = "VARCHAR", meaning = "J, s, Js or B" }
difference_fraction = { type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
bottleneck_a = { heading = "bottleneck A", type = "VARCHAR", null = true, meaning = "bottleneck on A" }
bottleneck_b = { heading = "bottleneck B", type = "VARCHAR", null = true, meaning = "bottleneck on B" }
largest_action = { type = "VARCHAR", null = true, meaning = "component.action with the largest energy difference; null without one" }
largest_difference_j = { heading = "of it", type = "DOUBLE", null = true, unit = "J", meaning = "energy difference of that action, B minus A" }
latency_difference_fs = { heading = "latency" }
energy_difference_fj = { heading = "energy" }
latency_b_fs = { heading = "latency B" }
*/
WITH moved AS (
    SELECT
        name,
        full_action AS action,
        sum(CASE WHEN run_id = $run_b THEN energy_fj ELSE 0 END)
            - sum(CASE WHEN run_id = $run_a THEN energy_fj ELSE 0 END) AS difference_fj
    FROM cube.cause(run_ids := [$run_a, $run_b], division := 'subgraph')
    GROUP BY name, full_action
),
largest AS (
    SELECT name, min({'size': -abs(difference_fj), 'action': action, 'fj': difference_fj}) AS moved
    FROM moved
    WHERE difference_fj <> 0
    GROUP BY name
),
met AS (
    SELECT
        name,
        coalesce(any_value(fusion_pattern) FILTER (WHERE run_id = $run_a), any_value(fusion_pattern)) AS fusion_pattern,
        CAST(coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_a), 0) AS HUGEINT) AS energy_a_fj,
        CAST(coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_b), 0) AS HUGEINT) AS energy_b_fj,
        CAST(coalesce(sum(latency_fs) FILTER (WHERE run_id = $run_a), 0) AS HUGEINT) AS latency_a_fs,
        CAST(coalesce(sum(latency_fs) FILTER (WHERE run_id = $run_b), 0) AS HUGEINT) AS latency_b_fs,
        coalesce(sum(dram_bytes) FILTER (WHERE run_id = $run_a), 0e0) AS memory_a_bytes,
        coalesce(sum(dram_bytes) FILTER (WHERE run_id = $run_b), 0e0) AS memory_b_bytes,
        any_value(bottleneck) FILTER (WHERE run_id = $run_a) AS bottleneck_a,
        any_value(bottleneck) FILTER (WHERE run_id = $run_b) AS bottleneck_b
    FROM cube.part(run_ids := [$run_a, $run_b], energy := 'whole')
    GROUP BY name
),
valued AS (
    SELECT
        name, fusion_pattern, energy_a_fj, energy_b_fj, latency_a_fs, latency_b_fs, memory_a_bytes, memory_b_bytes,
        bottleneck_a, bottleneck_b,
        (energy_b_fj - energy_a_fj) * energy_weight + (latency_b_fs - latency_a_fs) * time_weight AS edp_difference_exact,
        CASE $metric
            WHEN 'energy' THEN joules(energy_b_fj - energy_a_fj)
            WHEN 'latency' THEN seconds(latency_b_fs - latency_a_fs)
            WHEN 'edp' THEN CAST(edp_difference_exact AS DOUBLE) / 2e30
            WHEN 'memory' THEN memory_b_bytes - memory_a_bytes
            ELSE error('metric is ' || $metric || ', expected energy, latency, edp or memory')
        END AS difference
    FROM met
    CROSS JOIN cube.weight(run_a := $run_a, run_b := $run_b)
)
SELECT
    v.name,
    fusion_pattern, energy_a_fj, energy_b_fj,
    energy_b_fj - energy_a_fj AS energy_difference_fj,
    latency_a_fs, latency_b_fs,
    latency_b_fs - latency_a_fs AS latency_difference_fs,
    edp_difference_exact, memory_a_bytes, memory_b_bytes, difference,
    find_metric($metric).unit AS unit,
    fraction(difference, sum(difference ORDER BY v.name) OVER ()) AS difference_fraction,
    bottleneck_a, bottleneck_b,
    l.moved.action AS largest_action,
    joules(l.moved.fj) AS largest_difference_j
FROM valued AS v
LEFT JOIN largest AS l ON l.name = v.name
ORDER BY abs(difference) DESC, v.name
