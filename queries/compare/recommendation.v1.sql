/*
name = "compare.recommendation"
version = 1
schema = 1
summary = "The best run for energy, latency, throughput, memory and energy x delay, the best whose numbers are published, and the best that can be had"
grain = "one row per goal"
order = ["goal, in the order energy, latency, throughput, memory, edp"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to choose from; refused ones count in what the runs differ in" }
[columns]
goal = { type = "VARCHAR", meaning = "a metric: energy, latency, throughput, memory or edp, each of a batch; where batches differ energy_per_inference and edp_per_inference beside the others" }
hardware = { type = "VARCHAR", meaning = "the winner, with its configuration where the runs differ in that; ties go to the first name" }
value = { type = "DOUBLE", meaning = "of the goal's quantity, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of value" }
advantage_ratio = { type = "DOUBLE", meaning = "how many times better than the runner-up; null without one" }
runner_up = { type = "VARCHAR", meaning = "second best; null without one" }
tied_count = { type = "BIGINT", meaning = "runs that are exactly as good, the winner included" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the winner are projections or estimates" }
published_hardware = { type = "VARCHAR", meaning = "the best whose key numbers are not; null without one" }
published_value = { type = "DOUBLE", meaning = "its value, in unit" }
is_available = { type = "BOOLEAN", meaning = "the winner can be bought or rented, at a price that is no guess" }
available_hardware = { type = "VARCHAR", meaning = "the best that can; null without one" }
available_value = { type = "DOUBLE", meaning = "its value, in unit" }
*/
WITH chosen AS (
    SELECT
        n.label AS hardware,
        r.is_projection,
        r.is_available,
        CASE WHEN n.is_batch_varying THEN '_per_inference' ELSE '' END AS scope,
        CASE WHEN n.is_batch_varying THEN r.batch ELSE 1 END AS divisor,
        r.energy_j,
        r.latency_s,
        r.throughput_per_s,
        r.peak_memory_bytes,
        r.edp_js
    FROM runs AS r
    JOIN labels_of($run_ids) AS n ON n.run_id = r.run_id
    WHERE list_contains($run_ids, r.run_id)
),
valued AS (
    SELECT
        c.hardware,
        c.is_projection,
        c.is_available,
        unnest([
            {'position': 1, 'goal': 'energy' || c.scope, 'value': c.energy_j / c.divisor},
            {'position': 2, 'goal': 'latency', 'value': c.latency_s},
            {'position': 3, 'goal': 'throughput', 'value': c.throughput_per_s},
            {'position': 4, 'goal': 'memory', 'value': 0e0 + c.peak_memory_bytes},
            {'position': 5, 'goal': 'edp' || c.scope, 'value': c.edp_js / c.divisor}
        ], recursive := TRUE)
    FROM chosen AS c
),
candidate AS (
    SELECT
        v.*,
        metric_unit(v.goal) AS unit,
        is_higher_better(v.goal) AS is_higher_better,
        as_cost(is_higher_better(v.goal), v.value) AS cost
    FROM valued AS v
),
ranked AS (
    SELECT
        position,
        goal,
        hardware,
        value,
        unit,
        is_higher_better,
        is_projection,
        is_available,
        row_number() OVER by_cost AS rank,
        count(*) OVER (PARTITION BY goal, cost) AS tied_count,
        lead(value) OVER by_cost AS next_value,
        lead(hardware) OVER by_cost AS runner_up,
        first_value(CASE WHEN NOT is_projection THEN hardware END IGNORE NULLS) OVER everything AS published_hardware,
        first_value(CASE WHEN NOT is_projection THEN value END IGNORE NULLS) OVER everything AS published_value,
        first_value(CASE WHEN is_available THEN hardware END IGNORE NULLS) OVER everything AS available_hardware,
        first_value(CASE WHEN is_available THEN value END IGNORE NULLS) OVER everything AS available_value
    FROM candidate
    WINDOW
        by_cost AS (PARTITION BY goal ORDER BY cost, hardware),
        everything AS (
            PARTITION BY goal ORDER BY cost, hardware ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
)
SELECT
    goal,
    hardware,
    value,
    unit,
    better_ratio(is_higher_better, value, next_value) AS advantage_ratio,
    runner_up,
    tied_count,
    is_projection,
    published_hardware,
    published_value,
    is_available,
    available_hardware,
    available_value
FROM ranked
WHERE rank = 1
ORDER BY position
