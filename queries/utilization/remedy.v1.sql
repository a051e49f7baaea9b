/*
record = "Remedy"
summary = "Remedies for low utilization: for each run and property, the best other run that differs only in it, and its gain"
grain = "one row per evaluated run and property in which some evaluated other run differs"
table = [
    "hardware", "choice.kept", "throughput_ratio.kept", "energy_ratio.kept", "gain_ratio.kept", "latency_ratio",
    "remedy", "is_better",
]
order = ["position in run_ids", "run_id", "remedy_rank, those without one last", "remedy"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to improve" }
other_ids = { type = "INTEGER[]", meaning = "runs of the same model to choose from: at other batches, precisions, power modes and runtimes, on other hardware" }
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "thresholds of the grades, as for `utilization.summary`: a compute-bound run with a grade of good or better is at its roofline, so that only lower precision, more units or another chip remedy it" }
least_gain_ratio = { type = "DOUBLE", default = 1.05, meaning = "minimum gain of a better run" }
takes_all = { type = "BOOLEAN", default = false, meaning = "true to choose from unavailable chips too; otherwise only for a run on such a chip" }
near_fraction = { type = "DOUBLE", default = 0.9, meaning = "share of the largest gain: the smallest batch that reaches it is chosen" }
[columns]
bound = { type = "VARCHAR", meaning = "bottleneck with most of the run's time: compute, memory or launch; ties go to the first" }
bound_time_fraction = { type = "DOUBLE", meaning = "share of the latency in subgraphs with this bottleneck" }
remedy = { type = "VARCHAR", meaning = "remedy: larger batch, lower precision, other runtime, lower power mode, fewer units (a chip of the class with fewer and a lower peak), more units, or another chip (of any class, with no higher power cap); all chips share a deployment with the run's" }
remedy_rank = { type = "INTEGER", null = true, meaning = "rank among the remedies for the run's bottleneck; null for other remedies" }
choice = { heading = "setting", type = "VARCHAR", meaning = "the batch, precision, runtime or hardware with its power mode" }
is_better = { heading = "helps", type = "BOOLEAN", meaning = "true if gain_ratio reaches least_gain_ratio, and fewer units do not take more energy" }
gain_ratio = { heading = "throughput x efficiency", type = "DOUBLE", meaning = "throughput_ratio / energy_ratio: factor by which energy x time per inference falls" }
throughput_ratio = { heading = "speedup", type = "DOUBLE", meaning = "inferences per second over those of the run: above 1 is faster" }
energy_ratio = { heading = "energy", type = "DOUBLE", meaning = "energy per inference over that of the run: below 1 is less" }
latency_ratio = { heading = "latency per batch", type = "DOUBLE", meaning = "latency of a batch over that of the run: above 1 is longer" }
chosen_utilization_fraction = { type = "DOUBLE", meaning = "compute utilization of the choice" }
tried_count = { type = "BIGINT", meaning = "number of evaluated runs from which the choice was made" }
is_projection = { type = "BOOLEAN", meaning = "true if key numbers of the chosen hardware are projections or estimates" }
chosen_run_id = { type = "INTEGER", meaning = "run of the choice" }
run_id = { type = "INTEGER", meaning = "run to improve" }
*/
WITH grade_step AS (FROM utilization.grade(grade_bounds := $grade_bounds)),
one AS (
    SELECT
        c.run_id, c.hardware_id, c.hardware, c.power_mode, c.architecture, c.deployment, c.precision, c.batch,
        c.runtime, c.latency_s, c.throughput_per_s, c.energy_per_inference_j, c.compute_utilization_fraction,
        c.is_projection, c.is_available, c.peak_ops_per_s, c.units_total_count, c.tdp_w, w.source,
        list_position(
            ['fp64', 'fp32', 'tf32', 'bf16', 'fp16', 'fp8', 'int8', 'fp4', 'int4'], split_part(c.precision, '/', 1)
        ) AS precision_rank
    FROM cube.run(run_ids := list_concat($run_ids, $other_ids), rows := 'evaluated') AS c
    JOIN internal.workload AS w ON w.workload_id = c.workload_id
),
spent AS (
    SELECT run_id, bottleneck AS bound, sum(latency_fs) AS latency_fs
    FROM internal.run_subgraph
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id, bottleneck
),
bounded AS (
    SELECT
        run_id,
        bound,
        fraction(latency_fs, sum(latency_fs) OVER (PARTITION BY run_id)) AS bound_time_fraction
    FROM spent
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY latency_fs DESC, bound) = 1
),
pair AS (
    SELECT
        b.run_id,
        CASE
            WHEN o.hardware = b.hardware THEN
                CASE
                    WHEN o.precision = b.precision AND o.runtime = b.runtime AND o.batch > b.batch THEN 'larger batch'
                    WHEN
                        o.batch = b.batch AND o.runtime = b.runtime
                        AND o.precision_rank > b.precision_rank
                        THEN 'lower precision'
                    WHEN o.batch = b.batch AND o.precision = b.precision AND o.runtime <> b.runtime THEN 'other runtime'
                END
            WHEN o.batch <> b.batch OR o.precision <> b.precision OR o.runtime <> b.runtime THEN NULL
            WHEN o.hardware_id = b.hardware_id THEN CASE WHEN o.tdp_w < b.tdp_w THEN 'lower power mode' END
            WHEN o.power_mode <> 'default' OR NOT list_has_any(o.deployment, b.deployment) THEN NULL
            WHEN b.is_available AND NOT (o.is_available OR $takes_all) THEN NULL
            WHEN
                o.architecture = b.architecture
                AND o.units_total_count < b.units_total_count
                AND o.peak_ops_per_s < b.peak_ops_per_s
                THEN 'fewer units'
            WHEN
                o.architecture = b.architecture
                AND o.units_total_count > b.units_total_count
                AND o.peak_ops_per_s > b.peak_ops_per_s
                THEN 'more units'
            WHEN o.tdp_w <= b.tdp_w THEN 'another chip'
        END AS remedy,
        o.run_id AS chosen_run_id,
        o.batch,
        o.precision,
        o.runtime,
        o.hardware,
        o.is_projection,
        o.compute_utilization_fraction AS chosen_utilization_fraction,
        o.throughput_per_s / b.throughput_per_s AS throughput_ratio,
        o.energy_per_inference_j / b.energy_per_inference_j AS energy_ratio,
        o.latency_s / b.latency_s AS latency_ratio,
        o.throughput_per_s / b.throughput_per_s * (b.energy_per_inference_j / o.energy_per_inference_j) AS gain_ratio
    FROM one AS b
    JOIN one AS o ON o.source = b.source AND o.run_id <> b.run_id
    WHERE b.run_id IN (SELECT unnest($run_ids))
),
chosen AS (
    SELECT
        run_id,
        remedy,
        chosen_run_id,
        CASE remedy
            WHEN 'larger batch' THEN 'batch ' || batch
            WHEN 'lower precision' THEN "precision"
            WHEN 'other runtime' THEN runtime
            ELSE hardware
        END AS choice,
        is_projection,
        chosen_utilization_fraction,
        throughput_ratio,
        energy_ratio,
        latency_ratio,
        gain_ratio,
        count(*) OVER (PARTITION BY run_id, remedy) AS tried_count
    FROM (
        SELECT
            run_id,
            remedy,
            chosen_run_id,
            batch,
            "precision",
            runtime,
            hardware,
            is_projection,
            chosen_utilization_fraction,
            throughput_ratio,
            energy_ratio,
            latency_ratio,
            gain_ratio,
            gain_ratio >= $near_fraction * max(gain_ratio) OVER (PARTITION BY run_id, remedy) AS is_near
        FROM pair
        WHERE remedy IS NOT NULL
    )
    QUALIFY row_number() OVER (
        PARTITION BY run_id, remedy
        ORDER BY
            CASE WHEN remedy = 'larger batch' AND is_near THEN batch END NULLS LAST,
            gain_ratio DESC,
            chosen_run_id
    ) = 1
),
placed (state, remedy, remedy_rank) AS (
    VALUES
        ('launch', 'other runtime', 1),
        ('launch', 'larger batch', 2),
        ('launch', 'fewer units', 3),
        ('launch', 'lower power mode', 4),
        ('launch', 'another chip', 5),
        ('memory', 'lower precision', 1),
        ('memory', 'larger batch', 2),
        ('memory', 'other runtime', 3),
        ('memory', 'lower power mode', 4),
        ('memory', 'another chip', 5),
        ('compute', 'larger batch', 1),
        ('compute', 'fewer units', 2),
        ('compute', 'lower precision', 3),
        ('compute', 'lower power mode', 4),
        ('compute', 'another chip', 5),
        ('roof', 'lower precision', 1),
        ('roof', 'more units', 2),
        ('roof', 'another chip', 3)
)
SELECT
    b.hardware,
    b.compute_utilization_fraction,
    s.bound,
    s.bound_time_fraction,
    c.remedy,
    p.remedy_rank,
    c.choice,
    c.gain_ratio >= $least_gain_ratio AND (c.remedy <> 'fewer units' OR c.energy_ratio <= 1e0) AS is_better,
    c.gain_ratio, c.throughput_ratio, c.energy_ratio, c.latency_ratio, c.chosen_utilization_fraction, c.tried_count,
    c.is_projection, c.chosen_run_id,
    b.run_id
FROM chosen AS c
JOIN one AS b ON b.run_id = c.run_id
JOIN bounded AS s ON s.run_id = c.run_id
LEFT JOIN placed AS p
    ON p.remedy = c.remedy
    AND p.state = CASE
        WHEN s.bound = 'compute' AND b.compute_utilization_fraction
            >= (SELECT g.least_fraction FROM grade_step AS g WHERE g.grade = 'good')
            THEN 'roof'
        ELSE s.bound
    END
ORDER BY list_position($run_ids, b.run_id), b.run_id, p.remedy_rank NULLS LAST, c.remedy
