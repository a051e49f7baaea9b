/*
record = "ParetoPoint"
summary = "Pareto front of configurations in two metrics, and for each other configuration one that dominates it"
grain = "one row per requested run, refused ones included"
order = ["status: front, projection, dominated, unplaced, unsupported", "x, best first", "y, best first", "hardware", "precision", "batch", "runtime", "run_id"]
[parameters]
x = { type = "VARCHAR", default = "latency", meaning = "metric, by its name in the view metrics" }
y = { type = "VARCHAR", default = "energy_per_inference", meaning = "another metric" }
takes_all = { type = "BOOLEAN", default = false, meaning = "true to place unavailable hardware on the front too" }
[columns]
status = { type = "VARCHAR", meaning = "status: front; projection: would be on the front if it were available; dominated: another is at least as good in both and better in one; unplaced: a price is unknown; unsupported" }
x_value = { type = "DOUBLE", null = true, meaning = "value of the metric x, in x_unit" }
x_unit = { type = "VARCHAR", null = true, meaning = "unit of x_value" }
y_value = { type = "DOUBLE", null = true, meaning = "value of the metric y, in y_unit" }
y_unit = { type = "VARCHAR", null = true, meaning = "unit of y_value" }
dominated_by = { type = "VARCHAR", null = true, meaning = "configuration of the front with the largest x_ratio x y_ratio over it; null on the front" }
dominated_by_run_id = { type = "INTEGER", null = true, meaning = "run of that configuration" }
x_ratio = { type = "DOUBLE", null = true, meaning = "ratio in x by which that configuration is better" }
y_ratio = { type = "DOUBLE", null = true, meaning = "ratio in y by which that configuration is better" }
dominator_count = { heading = "dominating points", type = "BIGINT", meaning = "configurations of the front that dominate it" }
probability_front = { heading = "front confidence", type = "DOUBLE", null = true, meaning = "probability that no other configuration is better in both; null for configurations that dominated_by beats at least threefold in both metrics, and beyond the 200 nearest to the front" }
x_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of x_value; null where probability_front is" }
y_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of y_value; null where probability_front is" }
reason = { type = "VARCHAR", meaning = "reason why it is unplaced or unsupported; empty otherwise" }
is_elsewhere = { type = "BOOLEAN", meaning = "true if it is unplaced because only sellers of another kind state a price" }
average_power_w = { heading = "power" }
peak_memory_bytes = { heading = "memory" }
*/
WITH chosen AS MATERIALIZED (
    SELECT
        c.run_id,
        c.hardware,
        c.label,
        c.architecture,
        c.precision,
        c.batch,
        c.runtime,
        c.latency_s,
        c.energy_per_inference_j,
        c.throughput_per_s,
        c.throughput_limit,
        c.average_power_w,
        c.peak_memory_bytes,
        c.edp_per_inference_js,
        c.is_available,
        c.pay,
        c.way,
        c.price_half_width,
        c.hardware_id || ':' || c.way AS price_key,
        c.seller,
        c.unlike_price_text,
        $takes_all
            OR c.is_available
            OR NOT coalesce(
                bool_or(c.is_available) FILTER (
                    c.status = 'ok' AND metric_value($x, c) IS NOT NULL AND metric_value($y, c) IS NOT NULL
                ) OVER (),
                FALSE
            ) AS is_ranked,
        c.reason,
        CASE WHEN c.status = 'ok' THEN metric_value($x, c) END AS x_value,
        CASE WHEN c.status = 'ok' THEN metric_value($y, c) END AS y_value
    FROM (
        SELECT
            p.* REPLACE (
                p.is_available OR coalesce('given' IN (p.rented_basis, p.bought_basis), FALSE) AS is_available
            )
        FROM cube.cost(
            run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
            gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay
        ) AS p
    ) AS c
),
placed AS MATERIALIZED (
    SELECT
        c.run_id,
        c.label,
        c.is_ranked,
        c.x_value,
        c.y_value,
        as_cost(find_metric($x).is_higher_better, c.x_value) AS x_cost,
        as_cost(find_metric($y).is_higher_better, c.y_value) AS y_cost
    FROM chosen AS c
    WHERE c.x_value IS NOT NULL AND c.y_value IS NOT NULL
),
lowest AS (
    SELECT x_cost, min(y_cost) AS y_cost
    FROM placed
    WHERE is_ranked
    GROUP BY x_cost
),
stepped AS (
    SELECT
        x_cost,
        y_cost,
        min(y_cost) OVER (ORDER BY x_cost ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS y_cost_before
    FROM lowest
),
front AS (
    SELECT p.run_id, p.label, p.x_value, p.y_value, p.x_cost, p.y_cost
    FROM placed AS p
    JOIN stepped AS s ON s.x_cost = p.x_cost AND s.y_cost = p.y_cost
    WHERE p.is_ranked AND (s.y_cost_before IS NULL OR s.y_cost < s.y_cost_before)
),
beaten AS (
    SELECT
        p.run_id,
        f.run_id AS front_run_id,
        f.label,
        f.x_cost,
        f.y_cost,
        better_ratio(find_metric($x).is_higher_better, f.x_value, p.x_value) AS x_ratio,
        better_ratio(find_metric($y).is_higher_better, f.y_value, p.y_value) AS y_ratio
    FROM placed AS p
    JOIN front AS f
        ON f.x_cost <= p.x_cost
        AND f.y_cost <= p.y_cost
        AND (f.x_cost < p.x_cost OR f.y_cost < p.y_cost)
),
best AS (
    SELECT
        run_id,
        front_run_id,
        label,
        x_ratio,
        y_ratio,
        count(*) OVER (PARTITION BY run_id) AS dominator_count
    FROM beaten
    QUALIFY row_number() OVER (
        PARTITION BY run_id
        ORDER BY x_ratio * y_ratio DESC NULLS LAST, x_cost, y_cost, label, front_run_id
    ) = 1
),
judged AS (
    SELECT
        CASE
            WHEN c.reason <> '' THEN 5
            WHEN c.x_value IS NULL OR c.y_value IS NULL THEN 4
            WHEN b.run_id IS NOT NULL THEN 3
            WHEN NOT c.is_ranked THEN 2
            ELSE 1
        END AS position,
        c.label,
        c.is_ranked,
        c.price_half_width,
        c.price_key,
        c.seller,
        c.x_value,
        c.y_value,
        as_cost(find_metric($x).is_higher_better, c.x_value) AS x_cost,
        as_cost(find_metric($y).is_higher_better, c.y_value) AS y_cost,
        b.label AS dominated_by,
        b.front_run_id,
        b.x_ratio,
        b.y_ratio,
        coalesce(b.dominator_count, 0) AS dominator_count,
        c.run_id
    FROM chosen AS c
    LEFT JOIN best AS b ON b.run_id = c.run_id
),
contender AS (
    SELECT
        run_id,
        $x AS x_metric,
        as_cost(find_metric($x).is_higher_better, ln(x_value)) AS x_cost,
        $y AS y_metric,
        as_cost(find_metric($y).is_higher_better, ln(y_value)) AS y_cost,
        price_half_width,
        price_key,
        seller,
        row_number() OVER (ORDER BY position, least(x_ratio, y_ratio), j.x_cost, j.y_cost, j.label) AS front_index
    FROM judged AS j
    WHERE is_ranked AND position <= 3 AND x_value > 0e0 AND y_value > 0e0 AND coalesce(least(x_ratio, y_ratio), 1e0) < 3e0
    QUALIFY front_index <= 200
),
chance AS (FROM numpy.front_among(contender))
SELECT
    ['front', 'projection', 'dominated', 'unplaced', 'unsupported'][j.position] AS status,
    c.hardware, c.architecture, c.precision, c.batch, c.runtime, c.x_value,
    find_metric($x).unit AS x_unit,
    c.y_value,
    find_metric($y).unit AS y_unit,
    j.dominated_by,
    j.front_run_id AS dominated_by_run_id,
    j.x_ratio, j.y_ratio, j.dominator_count, h.probability_front,
    nullif(
        sqrt(
            pow(metric_half_width($x, t), 2)
            + CASE WHEN $x = 'cost' THEN pow(c.price_half_width, 2) ELSE 0e0 END
        ),
        0e0
    ) AS x_half_width,
    nullif(
        sqrt(
            pow(metric_half_width($y, t), 2)
            + CASE WHEN $y = 'cost' THEN pow(c.price_half_width, 2) ELSE 0e0 END
        ),
        0e0
    ) AS y_half_width,
    c.latency_s, c.energy_per_inference_j, c.throughput_per_s, c.throughput_limit, c.average_power_w,
    c.peak_memory_bytes, c.edp_per_inference_js, c.pay, c.way,
    c.is_available,
    CASE
        WHEN j.position = 5 THEN c.reason
        WHEN j.position = 4 AND c.unlike_price_text <> '' AND 'cost' IN ($x, $y) THEN 'of another kind of seller: ' || c.unlike_price_text
        WHEN j.position = 4 THEN 'the catalogue has no ' || concat_ws(
            ' and no ',
            CASE WHEN j.x_cost IS NULL THEN coalesce(CASE WHEN $x = 'cost' THEN by_way(c.pay, 'rent', 'purchase price') END, find_metric($x).missing) END,
            CASE WHEN j.y_cost IS NULL THEN coalesce(CASE WHEN $y = 'cost' THEN by_way(c.pay, 'rent', 'purchase price') END, find_metric($y).missing) END
        )
        ELSE ''
    END AS reason,
    j.position = 4 AND c.unlike_price_text <> '' AND 'cost' IN ($x, $y) AS is_elsewhere,
    c.run_id
FROM judged AS j
JOIN chosen AS c ON c.run_id = j.run_id
LEFT JOIN chance AS h ON h.run_id = j.run_id
LEFT JOIN internal.run_total AS t ON t.run_id = h.run_id
ORDER BY j.position, j.x_cost, j.y_cost, c.hardware, c.precision, c.batch, c.runtime, c.run_id
