/*
summary = "Limits that configurations miss"
grain = "one row per evaluated run and limit above 0 that the run misses; an unknown price misses every limit on it"
[parameters]
max_latency_s = { type = "DOUBLE", default = 0.0, meaning = "maximum latency of a batch; 0 for any" }
max_energy_j = { type = "DOUBLE", default = 0.0, meaning = "maximum total_energy_j; 0 for any" }
max_energy_per_inference_j = { type = "DOUBLE", default = 0.0, meaning = "maximum total_energy_per_inference_j; 0 for any" }
max_memory_bytes = { type = "DOUBLE", default = 0.0, meaning = "maximum memory for weights and activations of the batch; 0 for any" }
max_power_w = { type = "DOUBLE", default = 0.0, meaning = "maximum total_power_w; 0 for any" }
min_throughput_per_s = { type = "DOUBLE", default = 0.0, meaning = "minimum inferences per second; 0 for any" }
max_price_usd_per_hour = { type = "DOUBLE", default = 0.0, meaning = "maximum price of a chip in a cloud, which must be known; 0 for any" }
max_purchase_usd = { type = "DOUBLE", default = 0.0, meaning = "maximum purchase price of the chip with its host, which must be known; 0 for any" }
[columns]
run_id = { type = "INTEGER", meaning = "number of the run" }
limit_index = { type = "INTEGER", meaning = "order of the limits" }
limit_name = { type = "VARCHAR", meaning = "limit: latency, energy, energy_per_inference, memory, power, throughput, price or purchase" }
value = { type = "DOUBLE", null = true, meaning = "value of the run, in unit; null where no price is known" }
bound = { type = "DOUBLE", meaning = "the limit, in unit" }
excess = { type = "DOUBLE", null = true, meaning = "value - bound, for throughput bound - value, in unit" }
violation_fraction = { type = "DOUBLE", null = true, meaning = "value / bound - 1, for throughput bound / value - 1; null where no price is known" }
unit = { type = "VARCHAR", meaning = "unit of value, bound and excess" }
missing = { type = "VARCHAR", meaning = "name of the unknown price where value is null" }
*/
WITH limited AS (
    SELECT
        c.run_id,
        unnest([
            {'limit_index': 1, 'limit_name': 'latency', 'value': c.latency_s, 'bound': 0e0 + $max_latency_s},
            {'limit_index': 2, 'limit_name': 'energy', 'value': c.total_energy_j, 'bound': 0e0 + $max_energy_j},
            {
                'limit_index': 3,
                'limit_name': 'energy_per_inference',
                'value': c.total_energy_per_inference_j,
                'bound': 0e0 + $max_energy_per_inference_j
            },
            {'limit_index': 4, 'limit_name': 'memory', 'value': 0e0 + c.peak_memory_bytes, 'bound': 0e0 + $max_memory_bytes},
            {'limit_index': 5, 'limit_name': 'power', 'value': c.total_power_w, 'bound': 0e0 + $max_power_w},
            {
                'limit_index': 6,
                'limit_name': 'throughput',
                'value': c.throughput_per_s,
                'bound': 0e0 + $min_throughput_per_s
            },
            {
                'limit_index': 7,
                'limit_name': 'price',
                'value': c.price_cloud_usd_per_hour,
                'bound': 0e0 + $max_price_usd_per_hour
            },
            {'limit_index': 8, 'limit_name': 'purchase', 'value': c.total_purchase_usd, 'bound': 0e0 + $max_purchase_usd}
        ], recursive := TRUE)
    FROM cube.cost(
        run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years,
        hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share,
        region := $region, seller := $seller, gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay,
        rate_per_s := $rate_per_s
    ) AS c
    WHERE c.reason = ''
)
SELECT
    l.run_id,
    l.limit_index,
    l.limit_name,
    l.value,
    l.bound,
    as_cost(m.is_higher_better, l.value) - as_cost(m.is_higher_better, l.bound) AS excess,
    better_ratio(m.is_higher_better, l.bound, l.value) - 1e0 AS violation_fraction,
    m.unit,
    m.missing
FROM limited AS l
JOIN internal.metric AS m ON m.name = l.limit_name
WHERE l.bound > 0e0
    AND NOT coalesce(as_cost(m.is_higher_better, l.value) <= as_cost(m.is_higher_better, l.bound), FALSE)
ORDER BY run_id, limit_index
