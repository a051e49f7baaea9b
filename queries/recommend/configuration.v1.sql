/*
name = "recommend.configuration"
record = "RankedConfiguration"
version = 1
schema = 1
summary = "Configurations within limits, best first, then those that miss one, nearest first"
grain = "one row per run asked for, refused ones included"
order = ["status: feasible, unranked, infeasible, unsupported", "violation_fraction, unknown ones last", "objective, best first", "hardware", "precision", "batch", "runtime", "run_id"]
listed = [
    "status", "rank", "published_rank", "available_rank", "miss_rank", "hardware", "architecture", "precision",
    "batch", "runtime", "objective_value", "objective_unit", "objective_ratio", "objective_half_width",
    "probability_best", "likely_best", "probability_kept", "latency_s", "energy_per_inference_j",
    "throughput_per_s", "throughput_limit", "average_power_w", "peak_memory_bytes", "edp_per_inference_js",
    "price_cloud_usd_per_hour", "price_purchase_usd", "way", "usd_per_million", "gco2_per_million", "failed_count",
    "failed", "worst_limit", "worst_value", "worst_bound", "worst_unit", "violation_fraction", "is_projection",
    "is_available", "reason", "run_id",
]
[parameters]
objective = { type = "VARCHAR", default = "energy_per_inference", meaning = "a metric, by its name in the view metrics" }
max_latency_s = { type = "DOUBLE", default = 0.0, meaning = "at most this latency of a batch; 0 for any" }
max_energy_j = { type = "DOUBLE", default = 0.0, meaning = "at most this energy of a batch; 0 for any" }
max_energy_per_inference_j = { type = "DOUBLE", default = 0.0, meaning = "at most this energy of one inference; 0 for any" }
max_memory_bytes = { type = "DOUBLE", default = 0.0, meaning = "at most this memory for weights and activations of the batch; 0 for any" }
max_power_w = { type = "DOUBLE", default = 0.0, meaning = "at most this power while it runs; 0 for any" }
min_throughput_per_s = { type = "DOUBLE", default = 0.0, meaning = "at least so many inferences per second; 0 for any" }
max_price_usd_per_hour = { type = "DOUBLE", default = 0.0, meaning = "at most this price of a chip in a cloud, which must be known; 0 for any" }
max_purchase_usd = { type = "DOUBLE", default = 0.0, meaning = "at most this purchase price, which must be known; 0 for any" }
[columns]
status = { type = "VARCHAR", meaning = "feasible; unranked: within the limits, but the objective is not known; infeasible; unsupported" }
rank = { type = "BIGINT", null = true, meaning = "1 for the best of the feasible; null for others" }
published_rank = { type = "BIGINT", null = true, meaning = "the same among feasible ones that are no projections; null for others" }
available_rank = { type = "BIGINT", null = true, meaning = "the same among feasible ones that can be bought or rented; null for others" }
miss_rank = { type = "BIGINT", null = true, meaning = "1 for the infeasible one with the smallest violation_fraction; null for others" }
objective_value = { type = "DOUBLE", null = true, meaning = "of the objective, in objective_unit; null where it is not known" }
objective_unit = { type = "VARCHAR", null = true, meaning = "unit of objective_value" }
objective_ratio = { type = "DOUBLE", null = true, meaning = "how many times worse it is than the best feasible one; null without one" }
objective_half_width = { type = "DOUBLE", null = true, meaning = "of the 80 % interval of the objective's natural logarithm; null for what is not among the best 40, and for memory and prices" }
probability_best = { type = "DOUBLE", null = true, meaning = "that it is the best of those that keep the limits; null as before" }
likely_best = { type = "BOOLEAN", meaning = "it is predicted to be the best, or cannot be told apart from the one that is" }
probability_kept = { type = "DOUBLE", null = true, meaning = "that it keeps the limit that is in most doubt, of latency, energy, power and throughput; null without such a limit" }
way = { type = "VARCHAR", null = true, meaning = "cloud or purchase: what usd_per_million pays for, the cheaper one, or the one whose price is limited; null where no price is known" }
failed_count = { type = "BIGINT", meaning = "limits that it does not keep" }
failed = { type = "VARCHAR", meaning = "their names" }
worst_limit = { type = "VARCHAR", values = "MetricName", null = true, meaning = "the limit that it misses most; null where it keeps all" }
worst_value = { type = "DOUBLE", null = true, meaning = "what it has there, in worst_unit; null where it is not known" }
worst_bound = { type = "DOUBLE", null = true, meaning = "what is allowed there" }
worst_unit = { type = "VARCHAR", null = true, meaning = "unit of both" }
violation_fraction = { type = "DOUBLE", null = true, meaning = "how far it misses that limit: value / bound - 1, for throughput bound / value - 1; null where it keeps all or a price is not known" }
reason = { type = "VARCHAR", meaning = "why it is unranked or unsupported, or which price is not known; empty otherwise" }
*/
WITH paid AS (
    SELECT
        c.* EXCLUDE (usd_per_million),
        CASE
            WHEN $max_price_usd_per_hour > 0e0 AND $max_purchase_usd <= 0e0 THEN c.cloud_usd_per_million
            WHEN $max_purchase_usd > 0e0 AND $max_price_usd_per_hour <= 0e0
                THEN c.bought_usd_per_million
            ELSE c.usd_per_million
        END AS usd_per_million
    FROM cube.cost(
        run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years,
        hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share,
        region := $region, gco2_per_kwh := $gco2_per_kwh
    ) AS c
),
chosen AS MATERIALIZED (
    SELECT
        p.run_id, p.hardware, p.architecture, p.precision, p.batch, p.runtime, p.latency_s, p.energy_j,
        p.energy_per_inference_j, p.throughput_per_s, p.throughput_limit, p.average_power_w, p.peak_memory_bytes,
        p.edp_per_inference_js, p.price_cloud_usd_per_hour, p.price_purchase_usd, p.usd_per_million, p.gco2_per_million,
        p.is_projection, p.is_available, p.reason,
        CASE
            WHEN p.usd_per_million = p.cloud_usd_per_million THEN 'cloud'
            WHEN p.usd_per_million IS NOT NULL THEN 'purchase'
        END AS way,
        metric_value($objective, p) AS objective_value
    FROM paid AS p
),
missed AS (
    SELECT
        k.run_id,
        count(*) AS failed_count,
        string_agg(k.limit_name, ', ' ORDER BY k.limit_index) AS failed,
        string_agg(k.missing, ' and no ' ORDER BY k.limit_index) FILTER (WHERE k.value IS NULL)
            AS unknown,
        first(k ORDER BY k.violation_fraction DESC NULLS FIRST, k.limit_index) AS worst
    FROM (
        SELECT
            c.run_id,
            unnest(missed_limits(
                c,
                $max_latency_s,
                $max_energy_j,
                $max_energy_per_inference_j,
                $max_memory_bytes,
                $max_power_w,
                $min_throughput_per_s,
                $max_price_usd_per_hour,
                $max_purchase_usd
            ), recursive := TRUE)
        FROM chosen AS c
        WHERE c.reason = ''
    ) AS k
    GROUP BY k.run_id
),
judged AS (
    SELECT
        c.run_id,
        c.objective_value,
        c.is_projection,
        c.is_available,
        m.worst.violation_fraction AS violation_fraction,
        as_cost(is_higher_better($objective), c.objective_value) AS objective_cost,
        CASE
            WHEN c.reason <> '' THEN 4
            WHEN m.run_id IS NOT NULL THEN 3
            WHEN c.objective_value IS NULL THEN 2
            ELSE 1
        END AS position,
        row_number() OVER (ORDER BY c.hardware, c.precision, c.batch, c.runtime, c.run_id) AS name_place
    FROM chosen AS c
    LEFT JOIN missed AS m ON m.run_id = c.run_id
),
ranked AS (
    SELECT
        run_id,
        position,
        row_number() OVER (PARTITION BY position ORDER BY violation_fraction NULLS LAST, objective_cost NULLS LAST, name_place)
            AS place,
        row_number() OVER (
            PARTITION BY position, is_projection
            ORDER BY violation_fraction NULLS LAST, objective_cost NULLS LAST, name_place
        ) AS place_alike,
        row_number() OVER (
            PARTITION BY position, is_available
            ORDER BY violation_fraction NULLS LAST, objective_cost NULLS LAST, name_place
        ) AS place_available,
        first_value(objective_value) OVER (
            ORDER BY position, objective_cost ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS best_value
    FROM judged
),
standing AS (
    FROM standing_among((
        SELECT list({
            'question': $objective,
            'metric': $objective,
            'place': j.place,
            'run_id': j.run_id,
            'cost': as_cost(is_higher_better($objective), ln(j.objective_value))
        })
        FROM (
            SELECT run_id, objective_value, row_number() OVER (ORDER BY objective_cost, name_place) AS place
            FROM judged
            WHERE position = 1 AND objective_value > 0e0
            QUALIFY place <= 40
        ) AS j
    ))
)
SELECT
    ['feasible', 'unranked', 'infeasible', 'unsupported'][r.position] AS status,
    CASE WHEN r.position = 1 THEN r.place END AS rank,
    CASE WHEN r.position = 1 AND NOT c.is_projection THEN r.place_alike END AS published_rank,
    CASE WHEN r.position = 1 AND c.is_available THEN r.place_available END AS available_rank,
    CASE WHEN r.position = 3 THEN r.place END AS miss_rank,
    c.hardware, c.architecture, c.precision, c.batch, c.runtime, c.objective_value,
    metric_unit($objective) AS objective_unit,
    CASE
        WHEN min(r.position) OVER () = 1
            THEN better_ratio(is_higher_better($objective), r.best_value, c.objective_value)
    END AS objective_ratio,
    nullif(metric_half_width($objective, t.latency_half_width, t.energy_half_width), 0e0) AS objective_half_width,
    CASE WHEN metric_half_width($objective, 1e0, 1e0) > 0e0 THEN h.probability_best END AS probability_best,
    CASE
        WHEN metric_half_width($objective, 1e0, 1e0) > 0e0 THEN coalesce(h.is_likely_best, FALSE)
        ELSE r.position = 1 AND c.objective_value = r.best_value
    END AS likely_best,
    least(
        CASE WHEN $max_latency_s > 0e0 THEN probability_above(ln($max_latency_s / c.latency_s), t.latency_half_width) END,
        CASE
            WHEN $max_energy_j > 0e0
                THEN probability_above(ln($max_energy_j / c.energy_per_inference_j / c.batch), t.energy_half_width)
        END,
        CASE
            WHEN $max_energy_per_inference_j > 0e0 THEN probability_above(
                ln($max_energy_per_inference_j / c.energy_per_inference_j), t.energy_half_width
            )
        END,
        CASE
            WHEN $max_power_w > 0e0 THEN probability_above(
                ln($max_power_w / c.average_power_w),
                metric_half_width('power', t.latency_half_width, t.energy_half_width)
            )
        END,
        CASE
            WHEN $min_throughput_per_s > 0e0
                THEN probability_above(ln(c.throughput_per_s / $min_throughput_per_s), t.latency_half_width)
        END
    ) AS probability_kept,
    c.latency_s, c.energy_per_inference_j, c.throughput_per_s, c.throughput_limit, c.average_power_w,
    c.peak_memory_bytes, c.edp_per_inference_js, c.price_cloud_usd_per_hour, c.price_purchase_usd, c.way,
    c.usd_per_million, c.gco2_per_million,
    coalesce(m.failed_count, 0) AS failed_count,
    coalesce(m.failed, '') AS failed,
    m.worst.limit_name AS worst_limit,
    m.worst.value AS worst_value,
    m.worst.bound AS worst_bound,
    m.worst.unit AS worst_unit,
    m.worst.violation_fraction AS violation_fraction,
    c.is_projection,
    c.is_available,
    CASE
        WHEN r.position = 4 THEN c.reason
        WHEN m.unknown IS NOT NULL THEN 'the catalogue has no ' || m.unknown
        WHEN r.position = 2 THEN 'the catalogue has no ' || metric_missing($objective)
        ELSE ''
    END AS reason,
    c.run_id
FROM ranked AS r
JOIN chosen AS c ON c.run_id = r.run_id
LEFT JOIN missed AS m ON m.run_id = r.run_id
LEFT JOIN standing AS h ON r.position = 1 AND h.place = r.place
LEFT JOIN internal.run_total AS t ON h.place IS NOT NULL AND t.run_id = r.run_id
ORDER BY r.position, r.place
