/*
record = "Recommendation"
summary = "Best run for energy, latency, throughput, memory, energy x delay and the metric that decides: of all runs, of those in among_ids, and the best available one"
grain = "one row per choice and goal"
table = [
    "goal", "hardware.kept", "probability_best", "value.kept", "advantage_ratio.kept", "runner_up",
    "available_hardware", "available_value",
]
order = ["is_among", "goal, in the order energy, latency, throughput, memory, edp, power, efficiency"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to choose from; refused ones count in the labels" }
among_ids = { type = "INTEGER[]", default = [], meaning = "runs of run_ids to choose from a second time; empty for no second choice" }
metric = { type = "VARCHAR", default = "", meaning = "metric that is a further goal: power or efficiency" }
[columns]
is_among = { type = "BOOLEAN", meaning = "true if chosen from among_ids alone" }
goal = { shown = "metric", type = "VARCHAR", values = "MetricName", meaning = "metric: energy, latency, throughput, memory or edp of a batch; where batches differ, also energy_per_inference and edp_per_inference; power and efficiency if asked" }
hardware = { heading = "best", type = "VARCHAR", meaning = "the winner, with its configuration if the runs differ in configuration; ties go to the first name" }
value = { type = "DOUBLE", meaning = "value of the goal, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of value" }
advantage_ratio = { heading = "advantage", type = "DOUBLE", null = true, meaning = "factor by which the winner is better than the runner-up; null without a runner-up" }
tied_count = { type = "BIGINT", meaning = "number of runs with exactly the winner's value, winner included" }
probability_best = { heading = "confidence of being best", type = "DOUBLE", null = true, meaning = "probability that the winner is the best of all these runs; null for memory, which has no interval" }
rivals = { type = "VARCHAR[]", meaning = "runs that are statistically tied with the winner: better with a probability above 0.2" }
rival_ids = { type = "INTEGER[]", meaning = "numbers of these runs, in the same order" }
ranked_ids = { type = "INTEGER[]", meaning = "all these runs, best first" }
ahead_probabilities = { type = "DOUBLE[]", meaning = "probability that the winner is better than each other run, in that order; empty for memory" }
probabilities = { type = "DOUBLE[]", meaning = "probability of each run in that order to be the best; empty for memory" }
is_projection = { type = "BOOLEAN", meaning = "true if key numbers of the winner are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "true if the winner can be bought or rented at a known price" }
available_hardware = { heading = "best available", type = "VARCHAR", null = true, meaning = "the best available run; null without one" }
available_value = { heading = "value of best available", type = "DOUBLE", null = true, meaning = "value of the best available run, in unit" }
runner_up = { heading = "next best" }
*/
WITH chosen AS (
    SELECT
        r.run_id,
        n.label AS hardware,
        v.projection <> '' AS is_projection,
        v.unavailable = '' AS is_available,
        CASE WHEN n.is_batch_varying THEN '_per_inference' ELSE '' END AS scope,
        CASE WHEN n.is_batch_varying THEN r.batch ELSE 1 END AS divisor,
        joules(t.energy_fj) AS energy_j,
        seconds(t.latency_fs) AS latency_s,
        r.batch / seconds(t.interval_fs) AS throughput_per_s,
        r.weight_bytes + r.activation_bytes AS peak_memory_bytes,
        joules(t.energy_fj) / seconds(t.interval_fs) AS power_w,
        r.batch / joules(t.energy_fj) AS inferences_per_j
    FROM internal.run_total AS t
    JOIN internal.run AS r ON r.run_id = t.run_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    JOIN cube.label(run_ids := $run_ids) AS n ON n.run_id = t.run_id
    WHERE t.run_id IN (SELECT unnest($run_ids)) AND t.energy_fj IS NOT NULL
),
valued AS (
    SELECT
        c.run_id,
        c.hardware,
        c.is_projection,
        c.is_available,
        unnest([
            {'position': 1, 'goal': 'energy' || c.scope, 'value': c.energy_j / c.divisor},
            {'position': 2, 'goal': 'latency', 'value': c.latency_s},
            {'position': 3, 'goal': 'throughput', 'value': c.throughput_per_s},
            {'position': 4, 'goal': 'memory', 'value': 0e0 + c.peak_memory_bytes},
            {'position': 5, 'goal': 'edp' || c.scope, 'value': c.energy_j * c.latency_s / c.divisor},
            {'position': 6, 'goal': 'power', 'value': c.power_w},
            {'position': 7, 'goal': 'efficiency', 'value': c.inferences_per_j}
        ], recursive := TRUE)
    FROM chosen AS c
),
candidate AS (
    SELECT
        v.run_id, v.hardware, v.is_projection, v.is_available, v.position, v.goal, v.value,
        g.is_among,
        v.goal || CASE WHEN g.is_among THEN ' among' ELSE '' END AS question,
        m.unit,
        m.is_higher_better,
        as_cost(m.is_higher_better, v.value) AS cost
    FROM valued AS v
    JOIN (VALUES (FALSE), (TRUE)) AS g (is_among) ON NOT g.is_among OR list_contains($among_ids, v.run_id)
    JOIN internal.metric AS m ON m.name = v.goal
    WHERE v.goal NOT IN ('power', 'efficiency') OR v.goal = $metric
),
ranked AS (
    SELECT
        run_id, hardware, is_projection, is_available, position, goal, value, is_among, question, unit, is_higher_better, cost,
        row_number() OVER by_cost AS rank,
        count(*) OVER (PARTITION BY question, cost) AS tied_count,
        lead(value) OVER by_cost AS next_value,
        lead(hardware) OVER by_cost AS runner_up,
        first_value(CASE WHEN is_available THEN hardware END IGNORE NULLS) OVER everything AS available_hardware,
        first_value(CASE WHEN is_available THEN value END IGNORE NULLS) OVER everything AS available_value
    FROM candidate
    WINDOW
        by_cost AS (PARTITION BY question ORDER BY cost, hardware),
        everything AS (
            PARTITION BY question ORDER BY cost, hardware ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
),
contender AS (
    SELECT
        question,
        goal AS metric,
        rank AS row_id,
        run_id,
        as_cost(is_higher_better, ln(value)) AS cost,
        0e0 AS price_half_width,
        '' AS price_key,
        '' AS seller
    FROM ranked
    WHERE goal <> 'memory'
),
standing AS (FROM numpy.standing_among(contender)),
advantage AS (
    SELECT
        r.question,
        list(r.run_id ORDER BY r.rank) AS ranked_ids,
        coalesce(list(s.probability_best ORDER BY r.rank) FILTER (s.row_id IS NOT NULL), []) AS probabilities,
        coalesce(
            list(1e0 - s.probability_ahead ORDER BY r.rank) FILTER (r.rank > 1 AND s.row_id IS NOT NULL), []
        ) AS ahead_probabilities,
        coalesce(
            list(r.hardware ORDER BY s.probability_ahead DESC, r.hardware) FILTER (r.rank > 1 AND s.is_likely_best), []
        ) AS rivals,
        coalesce(
            list(r.run_id ORDER BY s.probability_ahead DESC, r.hardware) FILTER (r.rank > 1 AND s.is_likely_best), []
        ) AS rival_ids
    FROM ranked AS r
    LEFT JOIN standing AS s ON s.question = r.question AND s.row_id = r.rank
    GROUP BY r.question
)
SELECT
    r.is_among, r.goal, r.hardware, r.value, r.unit,
    better_ratio(r.is_higher_better, r.value, r.next_value) AS advantage_ratio,
    r.runner_up, r.tied_count,
    t.probabilities[1] AS probability_best,
    t.rivals,
    t.rival_ids,
    t.ranked_ids,
    t.ahead_probabilities,
    t.probabilities,
    r.is_projection, r.is_available, r.available_hardware, r.available_value
FROM ranked AS r
JOIN advantage AS t ON t.question = r.question
WHERE r.rank = 1
ORDER BY r.is_among, r.position
