/*
record = "Strength"
summary = "Strengths and weaknesses of several runs, against their median and their own peak"
grain = "one row per evaluated run and aspect"
order = ["position in run_ids", "run_id", "aspect in the order energy_per_inference, latency, power, utilization, idle, launch, memory"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare; refused ones are omitted" }
least_ratio = { type = "DOUBLE", default = 1.2, meaning = "ratio to the median from which an aspect is a strength or a weakness" }
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "thresholds of the grades, as for `utilization.summary`: good or better is a strength, poor or worse a weakness" }
least_idle_fraction = { type = "DOUBLE", default = 0.5, meaning = "share of idle units from which they are a weakness" }
least_launch_fraction = { type = "DOUBLE", default = 0.2, meaning = "share of launch-bound time from which this time is a weakness" }
least_memory_fraction = { type = "DOUBLE", default = 0.5, meaning = "share of memory-bound time from which this time is a weakness" }
[columns]
aspect = { type = "VARCHAR", meaning = "aspect: energy_per_inference, latency and power, relative to the median; or utilization, idle units, launch-bound and memory-bound time, of the run alone" }
verdict = { type = "VARCHAR", meaning = "strength, weakness or even" }
value = { type = "DOUBLE", meaning = "value in unit" }
unit = { type = "VARCHAR", meaning = "unit of value: J, s, W, or 1 for a fraction" }
median_value = { type = "DOUBLE", meaning = "median over all requested evaluated runs" }
median_ratio = { heading = "ratio to the median", type = "DOUBLE", null = true, meaning = "median over value: above 1 is better than the median; null for an aspect of the run alone" }
grade = { type = "VARCHAR", null = true, meaning = "grade of utilization; null for other aspects" }
run_count = { type = "BIGINT", meaning = "number of evaluated runs behind the median" }
unit_name = { heading = "unit" }
*/
WITH grade_step AS (FROM utilization.grade(grade_bounds := $grade_bounds)),
one AS (
    SELECT
        c.run_id,
        c.hardware,
        c.unit_name,
        unnest([
            {'position': 1, 'aspect': 'energy_per_inference', 'unit': 'J', 'value': c.energy_per_inference_j},
            {'position': 2, 'aspect': 'latency', 'unit': 's', 'value': c.latency_s},
            {'position': 3, 'aspect': 'power', 'unit': 'W', 'value': c.average_power_w},
            {'position': 4, 'aspect': 'utilization', 'unit': '1', 'value': c.compute_utilization_fraction},
            {'position': 5, 'aspect': 'idle', 'unit': '1', 'value': c.idle_units_fraction},
            {'position': 6, 'aspect': 'launch', 'unit': '1', 'value': c.launch_time_fraction},
            {'position': 7, 'aspect': 'memory', 'unit': '1', 'value': c.memory_time_fraction}
        ]) AS said
    FROM cube.run(run_ids := $run_ids, rows := 'evaluated') AS c
),
held AS (
    SELECT
        run_id,
        hardware,
        unit_name,
        said.position AS position,
        said.aspect AS aspect,
        said.unit AS unit,
        said.value AS value,
        median(said.value) OVER (PARTITION BY said.aspect) AS median_value,
        CASE
            WHEN said.unit <> '1' THEN median(said.value) OVER (PARTITION BY said.aspect) / nullif(said.value, 0e0)
        END AS median_ratio,
        CASE WHEN said.aspect = 'utilization' THEN (SELECT min_by(g.grade, g.grade_index) FROM grade_step AS g WHERE said.value >= g.least_fraction) END
            AS grade,
        count(*) OVER (PARTITION BY said.aspect) AS run_count
    FROM one
)
SELECT
    hardware, aspect,
    CASE
        WHEN median_ratio >= $least_ratio OR grade IN ('excellent', 'good') THEN 'strength'
        WHEN median_ratio * $least_ratio <= 1e0 OR grade IN ('poor', 'very poor') THEN 'weakness'
        WHEN aspect = 'idle' AND value >= $least_idle_fraction THEN 'weakness'
        WHEN aspect = 'launch' AND value >= $least_launch_fraction THEN 'weakness'
        WHEN aspect = 'memory' AND value >= $least_memory_fraction THEN 'weakness'
        ELSE 'even'
    END AS verdict,
    value, unit, median_value, median_ratio, grade, unit_name, run_count, run_id
FROM held
ORDER BY list_position($run_ids, run_id), run_id, position
