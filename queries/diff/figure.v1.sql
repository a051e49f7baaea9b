/*
record = "VersionFigure"
summary = "Changes between two versions of a model on each chip, with their uncertainty"
grain = "one row per pair of runs and metric; where a run was refused, its values and the changes are null"
order = ["position of the pair", "metric: latency, energy, memory"]
[parameters]
run_ids_a = { type = "INTEGER[]", meaning = "runs of the earlier version, one per chip" }
run_ids_b = { type = "INTEGER[]", meaning = "runs of the later version, in the same order" }
[columns]
hardware = { type = "VARCHAR", meaning = "hardware, with its power mode" }
metric = { type = "VARCHAR", meaning = "latency, energy or memory, of a batch" }
value_a = { heading = "before", type = "DOUBLE", null = true, meaning = "value of the earlier version, in unit; null where its run was refused" }
value_b = { heading = "after", type = "DOUBLE", null = true, meaning = "value of the later version, in unit; null where its run was refused" }
unit = { type = "VARCHAR", meaning = "s, J or B" }
change_fraction = { heading = "change", type = "DOUBLE", null = true, meaning = "value_b over value_a, minus 1" }
low_fraction = { heading = "range", type = "DOUBLE", null = true, meaning = "lower end of the 80 % interval of the change; for memory, which has none, the change" }
high_fraction = { type = "DOUBLE", null = true, meaning = "upper end of the 80 % interval" }
half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of value_b over value_a, without the errors that both versions share" }
same_fraction = { type = "DOUBLE", null = true, meaning = "share of the earlier version's value in kernels whose errors both versions share: kernels with the same operations, MACs, bytes and tiles, and kernels of one name as far as their MACs and bytes agree; null for memory" }
reason = { type = "VARCHAR", meaning = "reason why one of the runs was refused; empty otherwise" }
basis = { type = "VARCHAR", null = true, meaning = "origin of the errors of the later version; null for memory" }
run_a = { type = "INTEGER", meaning = "run of the earlier version" }
run_b = { type = "INTEGER", meaning = "run of the later version" }
*/
WITH version AS (
    SELECT unnest(range(len($run_ids_a))) AS pair_index, unnest($run_ids_a) AS run_a, unnest($run_ids_b) AS run_b
),
part AS MATERIALIZED (
    SELECT
        run_id,
        name,
        fusion_pattern,
        mac_count,
        moved_bytes,
        energy_j,
        latency_s,
        hash(fusion_pattern, operator_count, mac_count, moved_bytes, tile_count) AS work
    FROM subgraph_results
    WHERE run_id IN (SELECT unnest(list_concat($run_ids_a, $run_ids_b)))
),
alike AS (
    SELECT
        run_id,
        work,
        count(*) AS part_count,
        avg(energy_j ORDER BY energy_j) AS energy_j,
        avg(latency_s ORDER BY latency_s) AS latency_s
    FROM part
    GROUP BY run_id, work
),
-- kernels of equal name and pattern but different work share their error as far as their MACs and bytes agree
kept AS (
    SELECT
        p.pair_index,
        least(a.part_count, b.part_count) * least(a.energy_j, b.energy_j) AS energy_j,
        least(a.part_count, b.part_count) * least(a.latency_s, b.latency_s) AS latency_s
    FROM version AS p
    JOIN alike AS a ON a.run_id = p.run_a
    JOIN alike AS b ON b.run_id = p.run_b AND b.work = a.work
    UNION ALL
    SELECT
        p.pair_index,
        least(a.energy_j, b.energy_j) * u.overlap,
        least(a.latency_s, b.latency_s) * u.overlap
    FROM version AS p
    JOIN part AS a ON a.run_id = p.run_a
    JOIN part AS b ON b.run_id = p.run_b AND b.name = a.name AND b.fusion_pattern = a.fusion_pattern
    CROSS JOIN LATERAL (
        SELECT least(
            coalesce(least(a.mac_count, b.mac_count) / nullif(CAST(greatest(a.mac_count, b.mac_count) AS DOUBLE), 0e0), 1e0),
            coalesce(least(a.moved_bytes, b.moved_bytes) / nullif(greatest(a.moved_bytes, b.moved_bytes), 0e0), 1e0)
        ) AS overlap
    ) AS u
    ANTI JOIN alike AS x ON x.run_id = p.run_b AND x.work = a.work
    ANTI JOIN alike AS y ON y.run_id = p.run_a AND y.work = b.work
),
same AS (
    SELECT pair_index, sum(energy_j ORDER BY energy_j) AS energy_j, sum(latency_s ORDER BY latency_s) AS latency_s
    FROM kept
    GROUP BY pair_index
),
pair AS (
    SELECT DISTINCT run_a AS run_id, run_b AS other_run_id, unnest(['latency', 'energy']) AS metric FROM version
),
difference AS (FROM numpy.differences_of(pair)),
figure AS (
    SELECT
        p.pair_index,
        p.run_a,
        p.run_b,
        b.configured_hardware AS hardware,
        concat_ws('; ', a.refusal, b.refusal) AS reason,
        unnest([
            {
                'metric': 'latency', 'unit': 's', 'value_a': a.latency_s, 'value_b': b.latency_s,
                'same': coalesce(s.latency_s, 0e0), 'half_width': l.half_width, 'basis': b.latency_basis
            },
            {
                'metric': 'energy', 'unit': 'J', 'value_a': a.energy_j, 'value_b': b.energy_j,
                'same': coalesce(s.energy_j, 0e0), 'half_width': e.half_width, 'basis': b.energy_basis
            },
            {
                'metric': 'memory', 'unit': 'B', 'value_a': CAST(a.peak_memory_bytes AS DOUBLE),
                'value_b': CAST(b.peak_memory_bytes AS DOUBLE), 'same': NULL, 'half_width': 0e0, 'basis': NULL
            }
        ], recursive := TRUE)
    FROM version AS p
    JOIN run_figures AS a ON a.run_id = p.run_a
    JOIN run_figures AS b ON b.run_id = p.run_b
    LEFT JOIN same AS s ON s.pair_index = p.pair_index
    LEFT JOIN difference AS l ON l.run_id = p.run_a AND l.other_run_id = p.run_b AND l.metric = 'latency'
    LEFT JOIN difference AS e ON e.run_id = p.run_a AND e.other_run_id = p.run_b AND e.metric = 'energy'
),
-- w_a and w_b are the changed shares of the values before and after. The error of ln(after / before) is w_b (e_b - e) -
-- w_a (e_a - e): e is the error of the unchanged part, e_a and e_b are those of the changed parts, and any two of the
-- three errors differ as those of two models on this hardware do.
weighed AS (
    SELECT
        pair_index,
        run_a,
        run_b,
        hardware,
        reason,
        metric,
        unit,
        value_a,
        value_b,
        same,
        basis,
        half_width * sqrt(greatest(
            pow(1e0 - same / value_a, 2) + pow(1e0 - same / value_b, 2) - (1e0 - same / value_a) * (1e0 - same / value_b),
            0e0
        )) AS half_width,
        value_b / nullif(value_a, 0e0) AS ratio
    FROM figure
)
SELECT
    hardware, metric, value_a, value_b, unit,
    ratio - 1e0 AS change_fraction,
    ratio * exp(-coalesce(half_width, 0e0)) - 1e0 AS low_fraction,
    ratio * exp(coalesce(half_width, 0e0)) - 1e0 AS high_fraction,
    half_width,
    same / nullif(value_a, 0e0) AS same_fraction,
    reason, basis, run_a, run_b
FROM weighed
ORDER BY pair_index, list_position(['latency', 'energy', 'memory'], metric)
