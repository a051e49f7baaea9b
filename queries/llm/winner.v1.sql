/*
record = "ServedWinner"
summary = "Best hardware for a served language model: first token, time between tokens, energy and cost per token, each at its best batch"
grain = "one row per goal; none for a goal without values"
order = ["goal, in the order first_token, between_tokens, energy, cost"]
[parameters]
slow_half_widths = { type = "DOUBLE[]", default = [], meaning = "half-width of the 80 % interval that slow hosts add to the logarithm of the time between tokens, one per configuration; empty for none" }
takes_all = { type = "BOOLEAN", default = false, meaning = "true to rank unavailable hardware too, as without it if fewer than two are available" }
[columns]
goal = { type = "VARCHAR", meaning = "goal: first_token (least time to first token), between_tokens (least time between tokens), energy (least joules per output token, of all devices) or cost (least USD per million output tokens, in the requested way of paying)" }
label = { type = "VARCHAR", meaning = "the winner, as llm.phase names it; ties go to the first name" }
value = { type = "DOUBLE", meaning = "value of the goal, in unit" }
unit = { type = "VARCHAR", meaning = "s, J or USD" }
half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the value's logarithm" }
advantage_ratio = { type = "DOUBLE", null = true, meaning = "value of the next hardware over that of the winner; null without another hardware" }
runner_up = { type = "VARCHAR", null = true, meaning = "the next hardware, at its best batch; null without one" }
runner_up_batch = { type = "INTEGER", null = true, meaning = "batch of the runner-up" }
probability_best = { type = "DOUBLE", null = true, meaning = "probability that the winner is the best of the compared hardware" }
probability_ahead = { type = "DOUBLE", null = true, meaning = "probability that the winner is better than the runner-up; null without one" }
rivals = { type = "VARCHAR[]", meaning = "hardware that is statistically tied with the winner" }
hardware_count = { type = "BIGINT", meaning = "hardware compared, each with its number of devices and precision" }
*/
WITH valued AS (
    SELECT
        p.place,
        p.phase,
        p.label,
        p.hardware,
        p.precision,
        p.batch,
        p.device_count,
        p.is_available,
        p.run_id,
        p.seller,
        p.price_half_width,
        coalesce(CAST($slow_half_widths AS DOUBLE[])[p.place], 0e0) AS slow_half_width,
        p.latency_half_width,
        p.energy_half_width,
        p.hardware_id || ':' || p.way AS price_key,
        unnest([
            {
                'position': 1, 'goal': 'first_token', 'metric': 'latency', 'unit': 's', 'of_phase': 'prefill',
                'value': p.phase_s, 'half_width': p.latency_half_width
            },
            {
                'position': 2, 'goal': 'between_tokens', 'metric': 'latency', 'unit': 's', 'of_phase': 'decode',
                'value': p.phase_s * p.batch / p.token_count, 'half_width': sqrt(pow(p.latency_half_width, 2) + pow(slow_half_width, 2))
            },
            {
                'position': 3, 'goal': 'energy', 'metric': 'energy', 'unit': 'J', 'of_phase': 'decode',
                'value': p.energy_per_token_j, 'half_width': p.energy_half_width
            },
            {
                'position': 4, 'goal': 'cost', 'metric': 'cost', 'unit': 'USD', 'of_phase': 'decode',
                'value': p.usd_per_million, 'half_width': p.usd_half_width
            }
        ], recursive := TRUE)
    FROM llm.phase(
        prefill_ids := $prefill_ids, decode_ids := $decode_ids, run_ids := $run_ids, device_counts := $device_counts, batches := $batches, prefill_passes := $prefill_passes,
        engine := $engine, prompt := $prompt, steps := $steps, prefill_s := $prefill_s, decode_s := $decode_s, prefill_j := $prefill_j, decode_j := $decode_j,
        utilization := $utilization, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
        gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay
    ) AS p
),
-- the best batch for the goal of each chip, number of devices and precision
candidate AS (
    SELECT
        v.*,
        row_number() OVER (
            PARTITION BY goal, label ORDER BY value, batch, place
        ) AS place_of_hardware
    FROM valued AS v
    WHERE phase = of_phase AND value > 0e0
),
compared AS (
    SELECT c.*
    FROM candidate AS c
    WHERE place_of_hardware = 1
    QUALIFY $takes_all OR is_available OR count(*) FILTER (is_available) OVER (PARTITION BY goal) < 2
),
-- ranks count the compared hardware alone: unavailable hardware takes no rank
ranked AS (
    SELECT
        c.*,
        row_number() OVER (PARTITION BY goal ORDER BY value, label) AS rank
    FROM compared AS c
),
contender AS (
    SELECT
        goal AS question,
        metric,
        rank AS row_id,
        run_id,
        ln(value) AS cost,
        -- slow hosts of different hardware are as independent as prices of different sellers
        CASE goal WHEN 'cost' THEN price_half_width WHEN 'between_tokens' THEN slow_half_width ELSE 0e0 END AS price_half_width,
        CASE goal WHEN 'cost' THEN price_key WHEN 'between_tokens' THEN label ELSE '' END AS price_key,
        CASE goal WHEN 'cost' THEN seller WHEN 'between_tokens' THEN label ELSE '' END AS seller,
        latency_half_width,
        energy_half_width
    FROM ranked
),
standing AS (FROM numpy.standing_among(contender)),
advantage AS (
    SELECT
        r.goal,
        count(*) AS hardware_count,
        max(s.probability_best) FILTER (r.rank = 1) AS probability_best,
        1e0 - max(s.probability_ahead) FILTER (r.rank = 2) AS probability_ahead,
        max(r.value) FILTER (r.rank = 2) AS next_value,
        max(r.label) FILTER (r.rank = 2) AS runner_up,
        max(r.batch) FILTER (r.rank = 2) AS runner_up_batch,
        coalesce(list(r.label ORDER BY r.rank) FILTER (r.rank > 1 AND s.is_likely_best), []) AS rivals
    FROM ranked AS r
    LEFT JOIN standing AS s ON s.question = r.goal AND s.row_id = r.rank
    GROUP BY r.goal
)
SELECT
    r.goal, r.label, r.hardware, r.device_count, r.precision, r.batch, r.value, r.unit, r.half_width,
    t.next_value / r.value AS advantage_ratio,
    t.runner_up,
    t.runner_up_batch,
    t.probability_best,
    t.probability_ahead,
    t.rivals,
    t.hardware_count,
    r.is_available, r.place, r.run_id
FROM ranked AS r
JOIN advantage AS t ON t.goal = r.goal
WHERE r.rank = 1
ORDER BY r.position
