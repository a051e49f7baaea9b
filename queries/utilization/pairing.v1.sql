/*
record = "Pairing"
summary = "Hardware that wins most often by size of model and batch among these runs"
grain = "one row per class of FLOPs, precision, batch and goal"
table = [
    "least_flop_count", "goal", "hardware", "won_count", "median_value", "median_advantage_ratio",
    "median_utilization_fraction", "model_count", "hardware_count", "runner_up",
]
order = ["least_flop_count", "precision", "batch", "goal in the order energy, latency, utilization"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of several models on several chips, each configuration once" }
[columns]
least_flop_count = { heading = "FLOPs", type = "BIGINT", meaning = "lower bound of the class of model sizes: 10^6, 10^7 ... operations of one inference, two per MAC; 0 for models without MACs" }
precision = { type = "VARCHAR", meaning = "precision" }
goal = { type = "VARCHAR", meaning = "goal: energy (least energy per inference), latency (least latency) or utilization (largest share of its peak)" }
hardware = { type = "VARCHAR", meaning = "hardware that wins most contests; a contest is one model at one batch, precision and runtime on two or more chips; ties go to the first name" }
architecture = { type = "VARCHAR", meaning = "architecture class of the hardware" }
won_count = { shown = "{won_count} of {contest_count}", heading = "wins", type = "BIGINT", meaning = "number of contests that the hardware wins" }
entered_count = { type = "BIGINT", meaning = "number of contests that the hardware takes part in" }
contest_count = { type = "BIGINT", meaning = "number of all contests" }
model_count = { type = "BIGINT", meaning = "models in these contests" }
hardware_count = { heading = "hardware tried", type = "BIGINT", meaning = "hardware in at least one contest" }
median_value = { heading = "median", type = "DOUBLE", meaning = "median value of the goal's quantity in the contests that the hardware wins, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of median_value; 1 for a fraction of peak" }
median_advantage_ratio = { shown = "[{median_advantage_ratio:x} better]", heading = "advantage", type = "DOUBLE", null = true, meaning = "median factor by which the hardware beats the next one in the contests that it wins" }
median_utilization_fraction = { heading = "utilization", type = "DOUBLE", meaning = "median share of its peak in the contests that the hardware wins" }
runner_up = { heading = "runner-up", type = "VARCHAR", null = true, meaning = "hardware with the second most wins; null without one" }
runner_up_won_count = { type = "BIGINT", null = true, meaning = "contests that the runner-up wins" }
*/
WITH chosen AS (
    SELECT
        r.run_id,
        r.workload_id,
        r.model,
        r.batch,
        r.precision_label AS "precision",
        r.runtime,
        r.configured_hardware AS hardware,
        r.architecture,
        r.is_projection,
        r.peak_ops_per_s
    FROM run_configurations AS r
    WHERE r.run_id IN (SELECT unnest($run_ids)) AND r.refusal IS NULL
),
work AS (
    SELECT
        c.workload_id,
        c.runtime,
        CASE
            WHEN c.mac_count < c.batch THEN 0
            ELSE CAST(pow(10, length(CAST(2 * c.mac_count // c.batch AS VARCHAR)) - 1) AS BIGINT)
        END AS least_flop_count
    FROM (
        SELECT
            c.workload_id,
            c.runtime,
            max(t.mac_count) AS mac_count,
            any_value(c.batch) AS batch
        FROM chosen AS c
        JOIN internal.run_total AS t ON t.run_id = c.run_id
        GROUP BY c.workload_id, c.runtime
    ) AS c
),
candidate AS (
    SELECT
        k.least_flop_count,
        c.model,
        c.workload_id,
        c.batch,
        c.precision,
        c.runtime,
        c.hardware,
        c.architecture,
        c.is_projection,
        joules(t.energy_fj) / c.batch AS energy_per_inference_j,
        seconds(t.latency_fs) AS latency_s,
        utilization_of(t.computed_mac_count, t.interval_fs, c.peak_ops_per_s) AS compute_utilization_fraction
    FROM chosen AS c
    JOIN internal.run_total AS t ON t.run_id = c.run_id
    JOIN work AS k ON k.workload_id = c.workload_id AND k.runtime = c.runtime
),
entry AS (
    SELECT
        c.*,
        unnest([
            {'position': 1, 'goal': 'energy', 'value': c.energy_per_inference_j, 'cost': c.energy_per_inference_j, 'unit': 'J'},
            {'position': 2, 'goal': 'latency', 'value': c.latency_s, 'cost': c.latency_s, 'unit': 's'},
            {'position': 3, 'goal': 'utilization', 'value': c.compute_utilization_fraction, 'cost': 1e0 / nullif(c.compute_utilization_fraction, 0e0), 'unit': '1'}
        ]) AS goal
    FROM candidate AS c
),
placed AS (
    SELECT
        e.least_flop_count,
        e.precision,
        e.batch,
        e.goal.position AS position,
        e.goal.goal AS goal,
        e.goal.unit AS unit,
        e.goal.value AS value,
        e.model,
        e.hardware,
        e.architecture,
        e.is_projection,
        e.compute_utilization_fraction,
        row_number() OVER by_cost AS rank,
        lead(e.goal.cost) OVER by_cost / nullif(e.goal.cost, 0e0) AS advantage_ratio
    FROM entry AS e
    WHERE e.goal.cost IS NOT NULL
    WINDOW by_cost AS (
        PARTITION BY e.workload_id, e.precision, e.runtime, e.goal.goal ORDER BY e.goal.cost, e.hardware
    )
    QUALIFY count(*) OVER (PARTITION BY e.workload_id, e.precision, e.runtime, e.goal.goal) > 1
),
contest AS (
    SELECT
        least_flop_count,
        precision,
        batch,
        goal,
        count(*) FILTER (WHERE rank = 1) AS contest_count,
        count(DISTINCT model) AS model_count,
        count(DISTINCT hardware) AS hardware_count
    FROM placed
    GROUP BY least_flop_count, precision, batch, goal
),
score AS (
    SELECT
        least_flop_count,
        precision,
        batch,
        position,
        goal,
        unit,
        hardware,
        any_value(architecture) AS architecture,
        bool_or(is_projection) AS is_projection,
        count(*) AS entered_count,
        count(*) FILTER (WHERE rank = 1) AS won_count,
        median(value) FILTER (WHERE rank = 1) AS median_value,
        median(advantage_ratio) FILTER (WHERE rank = 1) AS median_advantage_ratio,
        median(compute_utilization_fraction) FILTER (WHERE rank = 1) AS median_utilization_fraction
    FROM placed
    GROUP BY least_flop_count, precision, batch, position, goal, unit, hardware
),
ranked AS (
    SELECT
        score.*,
        row_number() OVER by_wins AS rank,
        lead(hardware) OVER by_wins AS next_hardware,
        lead(won_count) OVER by_wins AS next_won_count
    FROM score
    WINDOW by_wins AS (PARTITION BY least_flop_count, precision, batch, goal ORDER BY won_count DESC, hardware)
)
SELECT
    r.least_flop_count, r.precision, r.batch, r.goal, r.hardware, r.architecture, r.won_count, r.entered_count,
    c.contest_count,
    c.model_count,
    c.hardware_count,
    r.median_value, r.unit, r.median_advantage_ratio, r.median_utilization_fraction,
    CASE WHEN r.next_won_count > 0 THEN r.next_hardware END AS runner_up,
    CASE WHEN r.next_won_count > 0 THEN r.next_won_count END AS runner_up_won_count,
    r.is_projection
FROM ranked AS r
JOIN contest AS c
    ON c.least_flop_count = r.least_flop_count
    AND c.precision = r.precision
    AND c.batch = r.batch
    AND c.goal = r.goal
WHERE r.rank = 1
ORDER BY r.least_flop_count, r.precision, r.batch, r.position
