/*
name = "compare.recommendation"
version = 2
schema = 3
summary = "The best run for energy, latency, throughput, memory and energy x delay, and the best whose numbers are published"
grain = "one row per goal"
order = ["goal, in the order energy, latency, throughput, memory, edp"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to choose from" }
[columns]
goal = { type = "VARCHAR", meaning = "energy, latency, throughput, memory, or edp: energy x delay" }
hardware = { type = "VARCHAR", meaning = "the winner; ties go to the first name" }
value = { type = "DOUBLE", meaning = "of the goal's quantity, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of value" }
advantage_ratio = { type = "DOUBLE", meaning = "how many times better than the runner-up; null without one" }
runner_up = { type = "VARCHAR", meaning = "second best; null without one" }
tied_count = { type = "BIGINT", meaning = "runs that are exactly as good, the winner included" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the winner are projections or estimates" }
published_hardware = { type = "VARCHAR", meaning = "the best whose key numbers are not; null without one" }
published_value = { type = "DOUBLE", meaning = "its value, in unit" }
*/
WITH candidate AS (
    SELECT
        configuration_name(r.hardware, r.power_mode) AS hardware,
        r.is_projection,
        unnest([
            {'position': 1, 'goal': 'energy', 'value': r.energy_j, 'cost': r.energy_j, 'unit': 'J'},
            {'position': 2, 'goal': 'latency', 'value': r.latency_s, 'cost': r.latency_s, 'unit': 's'},
            {'position': 3, 'goal': 'throughput', 'value': r.throughput_per_s, 'cost': 1e0 / r.throughput_per_s, 'unit': '1/s'},
            {'position': 4, 'goal': 'memory', 'value': CAST(r.peak_memory_bytes AS DOUBLE), 'cost': CAST(r.peak_memory_bytes AS DOUBLE), 'unit': 'B'},
            {'position': 5, 'goal': 'edp', 'value': r.edp_js, 'cost': r.edp_js, 'unit': 'Js'}
        ]) AS goal
    FROM runs AS r
    WHERE list_contains($run_ids, r.run_id)
),
ranked AS (
    SELECT
        c.goal.position AS position,
        c.goal.goal AS goal,
        c.goal.value AS value,
        c.goal.unit AS unit,
        c.goal.cost AS cost,
        c.hardware,
        c.is_projection,
        row_number() OVER by_cost AS rank,
        count(*) OVER (PARTITION BY c.goal.goal, c.goal.cost) AS tied_count,
        lead(c.goal.cost) OVER by_cost AS next_cost,
        lead(c.hardware) OVER by_cost AS next_hardware,
        first_value(CASE WHEN c.is_projection THEN NULL ELSE c.hardware END IGNORE NULLS) OVER everything
            AS published_hardware,
        first_value(CASE WHEN c.is_projection THEN NULL ELSE c.goal.value END IGNORE NULLS) OVER everything
            AS published_value
    FROM candidate AS c
    WINDOW
        by_cost AS (PARTITION BY c.goal.goal ORDER BY c.goal.cost, c.hardware),
        everything AS (
            PARTITION BY c.goal.goal ORDER BY c.goal.cost, c.hardware
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
)
SELECT
    goal,
    hardware,
    value,
    unit,
    next_cost / nullif(cost, 0e0) AS advantage_ratio,
    next_hardware AS runner_up,
    tied_count,
    is_projection,
    published_hardware,
    published_value
FROM ranked
WHERE rank = 1
ORDER BY position
