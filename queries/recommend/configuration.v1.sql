/*
record = "RankedConfiguration"
summary = "Configurations within limits, best first, then configurations that miss a limit, nearest first"
grain = "one row per requested run, refused ones included"
order = ["status: feasible, unranked, infeasible, unsupported", "among feasible ones, those with a rank first", "violation_fraction, unknown ones last", "objective, best first", "hardware", "precision", "batch", "runtime", "run_id"]
[parameters]
objective = { type = "VARCHAR", default = "energy_per_inference", meaning = "metric, by its name in the view metrics" }
max_latency_s = { type = "DOUBLE", default = 0.0, meaning = "maximum latency of a batch; 0 for any" }
max_energy_j = { type = "DOUBLE", default = 0.0, meaning = "maximum total_energy_j; 0 for any" }
max_energy_per_inference_j = { type = "DOUBLE", default = 0.0, meaning = "maximum total_energy_per_inference_j; 0 for any" }
max_memory_bytes = { type = "DOUBLE", default = 0.0, meaning = "maximum memory for weights and activations of the batch; 0 for any" }
max_power_w = { type = "DOUBLE", default = 0.0, meaning = "maximum total_power_w; 0 for any" }
min_throughput_per_s = { type = "DOUBLE", default = 0.0, meaning = "minimum inferences per second; 0 for any" }
max_price_usd_per_hour = { type = "DOUBLE", default = 0.0, meaning = "maximum price of a chip in a cloud, which must be known; 0 for any" }
max_purchase_usd = { type = "DOUBLE", default = 0.0, meaning = "maximum purchase price of the chip with its host, which must be known; 0 for any" }
takes_all = { type = "BOOLEAN", default = false, meaning = "true to rank unavailable hardware too" }
[columns]
status = { type = "VARCHAR", meaning = "status: feasible; unranked, within the limits but without a known objective; infeasible; unsupported" }
rank = { type = "BIGINT", null = true, meaning = "rank among the feasible, 1 for the best; null for others, and for unavailable hardware unless all hardware is unavailable or takes_all is true" }
miss_rank = { type = "BIGINT", null = true, meaning = "rank among the infeasible, 1 for the smallest violation_fraction; null for others, and for unavailable hardware unless all hardware is unavailable or takes_all is true" }
objective_value = { type = "DOUBLE", null = true, meaning = "objective in objective_unit, with the host where it is a purchase price, and with the energy of the host and of idle time where it is an energy, power, inferences per joule or energy x delay; null where unknown" }
hostless_value = { type = "DOUBLE", null = true, meaning = "objective without the host, in objective_unit; null where unknown" }
objective_unit = { type = "VARCHAR", null = true, meaning = "unit of objective_value" }
objective_ratio = { heading = "ratio", type = "DOUBLE", null = true, meaning = "factor by which the objective is worse than the best feasible one; null without a feasible one" }
objective_half_width = { heading = "range", type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the objective's logarithm; null for memory and prices of chips" }
probability_best = { heading = "confidence", type = "DOUBLE", null = true, meaning = "probability that the configuration is the best within the limits; null for memory and prices of chips, without a rank, and beyond the 40 best" }
likely_best = { type = "BOOLEAN", meaning = "true if the configuration is predicted to be the best, or is statistically tied with the best" }
probability_better = { type = "DOUBLE", null = true, meaning = "probability that the configuration is better than the first; null for the first, and where probability_best is" }
probability_kept = { type = "DOUBLE", null = true, meaning = "probability of meeting the least certain limit among those on latency, energy, power and throughput; null without such a limit" }
failed_count = { type = "BIGINT", meaning = "number of missed limits" }
failed = { heading = "also missed", type = "VARCHAR", meaning = "names of the missed limits" }
worst_limit = { type = "VARCHAR", values = "MetricName", null = true, meaning = "limit with the largest violation; null where all limits are met" }
worst_value = { heading = "value", type = "DOUBLE", null = true, meaning = "value of the metric of worst_limit, in worst_unit; null where unknown" }
worst_bound = { heading = "limit", type = "DOUBLE", null = true, meaning = "bound of worst_limit, in worst_unit" }
worst_unit = { type = "VARCHAR", null = true, meaning = "unit of worst_value and worst_bound" }
violation_fraction = { heading = "excess", type = "DOUBLE", null = true, meaning = "violation of worst_limit: value / bound - 1, for throughput bound / value - 1; null where all limits are met or a price is unknown" }
reason = { type = "VARCHAR", meaning = "reason why it is unranked or unsupported, or the unknown price; empty otherwise" }
is_elsewhere = { type = "BOOLEAN", meaning = "true if it is unranked because only sellers of another kind state a price" }
average_power_w = { heading = "power" }
price_text = { heading = "price" }
way = { heading = "payment" }
host_energy_per_inference_j = { heading = "host energy" }
peak_memory_bytes = { heading = "memory" }
*/
WITH chosen AS MATERIALIZED (
    SELECT
        p.run_id, p.hardware, p.hardware_id, p.architecture, p.precision, p.batch, p.runtime, p.latency_s, p.energy_j,
        p.energy_per_inference_j, p.throughput_per_s, p.throughput_limit, p.average_power_w, p.total_power_w,
        p.peak_memory_bytes,
        p.edp_per_inference_js, p.price_cloud_usd_per_hour, p.price_purchase_usd, p.total_purchase_usd, p.pay, p.way, p.usd_per_million,
        p.rented_usd_per_million, p.bought_usd_per_million, p.price_half_width, p.bought_price_half_width, p.seller, p.price_text, p.unlike_price_text,
        p.gco2_per_million,
        p.is_available OR coalesce('given' IN (p.rented_basis, p.bought_basis), FALSE) AS is_available,
        p.reason, p.assumed_host, p.host_energy_per_inference_j, p.total_energy_per_inference_j,
        p.total_energy_j, p.busy_fraction, p.idle_energy_per_inference_j,
        metric_value($objective, p) * CASE
            WHEN $objective IN ('cost', 'carbon') OR p.energy_per_inference_j IS NULL THEN 1e0
            ELSE pow(
                (p.energy_per_inference_j + p.idle_energy_per_inference_j) / p.energy_per_inference_j,
                find_metric($objective).energy_power
            )
        END * CASE WHEN $objective = 'power' THEN p.busy_fraction ELSE 1e0 END AS hostless_value,
        -- Costs and carbon already include the electricity of a host.
        CASE WHEN $objective = 'purchase' THEN p.total_purchase_usd ELSE metric_value($objective, p) END * CASE
            WHEN $objective IN ('cost', 'carbon') OR p.energy_per_inference_j IS NULL THEN 1e0
            ELSE pow(
                p.total_energy_per_inference_j / p.energy_per_inference_j, find_metric($objective).energy_power
            )
        END * CASE WHEN $objective = 'power' THEN p.busy_fraction ELSE 1e0 END AS objective_value
    FROM cube.cost(
        run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years,
        hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share,
        region := $region, seller := $seller, gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay, rate_per_s := $rate_per_s
    ) AS p
),
missed AS (
    SELECT
        k.run_id,
        count(*) AS failed_count,
        string_agg(k.limit_name, ', ' ORDER BY k.limit_index) AS failed,
        string_agg(k.missing, ' and no ' ORDER BY k.limit_index) FILTER (WHERE k.value IS NULL)
            AS unknown,
        first(k ORDER BY k.violation_fraction DESC NULLS FIRST, k.limit_index) AS worst
    FROM recommend.miss(
        run_ids := $run_ids, max_latency_s := $max_latency_s, max_energy_j := $max_energy_j,
        max_energy_per_inference_j := $max_energy_per_inference_j, max_memory_bytes := $max_memory_bytes,
        max_power_w := $max_power_w, min_throughput_per_s := $min_throughput_per_s, max_price_usd_per_hour :=
        $max_price_usd_per_hour, max_purchase_usd := $max_purchase_usd, utilization := $utilization, lifetime_years
        := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share
        := $host_share, region := $region, seller := $seller, gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay, rate_per_s := $rate_per_s
    ) AS k
    GROUP BY k.run_id
),
judged AS (
    SELECT
        c.run_id,
        c.objective_value,
        c.is_available,
        m.worst.violation_fraction AS violation_fraction,
        as_cost(find_metric($objective).is_higher_better, c.objective_value) AS objective_cost,
        CASE
            WHEN c.reason <> '' THEN 4
            WHEN m.run_id IS NOT NULL THEN 3
            WHEN c.objective_value IS NULL THEN 2
            ELSE 1
        END AS position,
        row_number() OVER (ORDER BY c.hardware, c.precision, c.batch, c.runtime, c.run_id) AS name_index
    FROM chosen AS c
    LEFT JOIN missed AS m ON m.run_id = c.run_id
),
eligible AS (
    SELECT
        j.*,
        $takes_all
            OR j.is_available
            OR NOT coalesce(bool_or(j.is_available) OVER (PARTITION BY j.position), FALSE) AS is_ranked
    FROM judged AS j
),
ranked AS (
    SELECT
        run_id,
        position,
        is_ranked,
        objective_value,
        row_number() OVER (
            PARTITION BY position
            ORDER BY violation_fraction NULLS LAST, objective_cost NULLS LAST, name_index
        ) AS ordinal,
        row_number() OVER (
            PARTITION BY position, is_ranked
            ORDER BY violation_fraction NULLS LAST, objective_cost NULLS LAST, name_index
        ) AS rank,
        first_value(objective_value) OVER (
            ORDER BY position, NOT is_ranked, objective_cost ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS best_value
    FROM eligible
),
contender AS (
    SELECT
        $objective AS question,
        $objective AS metric,
        j.rank AS row_id,
        j.run_id,
        as_cost(find_metric($objective).is_higher_better, ln(j.objective_value)) AS cost,
        CASE WHEN $objective = 'cost' THEN c.price_half_width ELSE 0e0 END AS price_half_width,
        c.hardware_id || ':' || c.way AS price_key,
        c.seller
    FROM ranked AS j
    JOIN chosen AS c ON c.run_id = j.run_id
    WHERE j.position = 1 AND j.is_ranked AND j.objective_value > 0e0 AND j.rank <= 40
),
-- factor by which each run stays within each limit
margin AS (
    SELECT
        c.run_id AS row_id,
        unnest([
            {'bound': 0e0 + $max_latency_s, 'half_width': t.latency_half_width, 'ratio': $max_latency_s / c.latency_s},
            {
                'bound': 0e0 + $max_energy_j, 'half_width': t.energy_half_width,
                'ratio': $max_energy_j / c.total_energy_j
            },
            {
                'bound': 0e0 + $max_energy_per_inference_j, 'half_width': t.energy_half_width,
                'ratio': $max_energy_per_inference_j / c.total_energy_per_inference_j
            },
            {'bound': 0e0 + $max_power_w, 'half_width': t.power_half_width, 'ratio': $max_power_w / c.total_power_w},
            {
                'bound': 0e0 + $min_throughput_per_s, 'half_width': t.latency_half_width,
                'ratio': c.throughput_per_s / $min_throughput_per_s
            }
        ], recursive := TRUE)
    FROM ranked AS r
    JOIN chosen AS c ON c.run_id = r.run_id
    LEFT JOIN internal.run_total AS t ON t.run_id = CASE WHEN r.position = 1 THEN r.run_id END
),
limited AS (SELECT row_id, ln(ratio) AS ahead, half_width FROM margin WHERE bound > 0e0 AND ratio > 0e0),
standing AS (FROM numpy.standing_among(contender)),
kept AS (SELECT row_id, min(probability) AS probability FROM numpy.probabilities_of(limited) GROUP BY row_id)
SELECT
    ['feasible', 'unranked', 'infeasible', 'unsupported'][r.position] AS status,
    CASE WHEN r.position = 1 AND r.is_ranked THEN r.rank END AS rank,
    CASE WHEN r.position = 3 AND r.is_ranked THEN r.rank END AS miss_rank,
    c.hardware, c.architecture, c.precision, c.batch, c.runtime, c.objective_value, c.hostless_value,
    find_metric($objective).unit AS objective_unit,
    CASE
        WHEN min(r.position) OVER () = 1
            THEN better_ratio(find_metric($objective).is_higher_better, r.best_value, c.objective_value)
    END AS objective_ratio,
    nullif(
        sqrt(
            pow(metric_half_width($objective, t), 2)
            + CASE WHEN $objective = 'cost' THEN pow(c.price_half_width, 2) ELSE 0e0 END
        ),
        0e0
    ) AS objective_half_width,
    CASE WHEN find_metric($objective).half_width_column <> '' THEN h.probability_best END AS probability_best,
    CASE WHEN find_metric($objective).half_width_column <> '' THEN h.probability_ahead END AS probability_better,
    CASE
        WHEN find_metric($objective).half_width_column <> '' THEN coalesce(h.is_likely_best, FALSE)
        ELSE r.position = 1 AND r.is_ranked AND c.objective_value = r.best_value
    END AS likely_best,
    k.probability AS probability_kept,
    c.latency_s, c.energy_j, c.energy_per_inference_j, c.throughput_per_s, c.throughput_limit, c.average_power_w,
    c.total_power_w, c.assumed_host, c.host_energy_per_inference_j, c.total_energy_per_inference_j, c.total_energy_j,
    c.busy_fraction, c.idle_energy_per_inference_j,
    c.peak_memory_bytes, c.edp_per_inference_js, c.price_cloud_usd_per_hour, c.price_purchase_usd, c.total_purchase_usd, c.pay, c.way,
    c.usd_per_million, c.rented_usd_per_million, c.bought_usd_per_million, c.price_half_width,
    c.bought_price_half_width, c.price_text,
    c.gco2_per_million,
    coalesce(m.failed_count, 0) AS failed_count,
    coalesce(m.failed, '') AS failed,
    m.worst.limit_name AS worst_limit,
    m.worst.value AS worst_value,
    m.worst.bound AS worst_bound,
    m.worst.unit AS worst_unit,
    m.worst.violation_fraction AS violation_fraction,
    c.is_available,
    CASE
        WHEN r.position = 4 THEN c.reason
        WHEN m.unknown IS NOT NULL THEN 'the catalogue has no ' || m.unknown
        WHEN r.position = 2 AND $objective = 'cost' AND c.unlike_price_text <> '' THEN 'of another kind of seller: ' || c.unlike_price_text
        WHEN r.position = 2 THEN 'the catalogue has no ' || coalesce(CASE WHEN $objective = 'cost' THEN by_way(c.pay, 'rent', 'purchase price') END, find_metric($objective).missing)
        ELSE ''
    END AS reason,
    m.unknown IS NULL AND r.position = 2 AND $objective = 'cost' AND c.unlike_price_text <> '' AS is_elsewhere,
    c.run_id
FROM ranked AS r
JOIN chosen AS c ON c.run_id = r.run_id
LEFT JOIN missed AS m ON m.run_id = r.run_id
LEFT JOIN kept AS k ON k.row_id = r.run_id
LEFT JOIN standing AS h ON h.row_id = CASE WHEN r.position = 1 AND r.is_ranked THEN r.rank END
LEFT JOIN internal.run_total AS t ON t.run_id = CASE WHEN r.position = 1 THEN r.run_id END
ORDER BY r.position, r.position = 1 AND NOT r.is_ranked, r.ordinal
