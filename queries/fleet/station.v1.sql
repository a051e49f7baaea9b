/*
record = "Station"
summary = "Configurations of a fleet: time and energy of a batch, price, idle power and uncertainty"
grain = "one row per requested run, refused ones included"
[parameters]
engine = { type = "VARCHAR", default = "", meaning = "engine that serves a language model, as serving_predictions names it; empty for other models" }
[columns]
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "latency of a batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second of batches that run one after the other" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of a batch" }
latency_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of latency_s" }
energy_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of energy_j" }
weight_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "parameters and buffers read, as stored" }
rent_text = { type = "VARCHAR", meaning = "rental price with seller and date; empty without one from the compared kind of seller" }
purchase_text = { type = "VARCHAR", meaning = "purchase price with seller and date; empty without one from the compared kind of seller" }
memory_capacity_bytes = { type = "DOUBLE", null = true, unit = "B", meaning = "capacity of one device" }
*/
SELECT
    c.run_id,
    c.model,
    c.hardware,
    c.hardware_id,
    c.architecture,
    c.precision,
    c.batch,
    c.runtime,
    c.status,
    c.reason,
    c.latency_s,
    c.throughput_per_s,
    c.energy_j,
    c.resting_power_w AS idle_power_w,
    CASE
        WHEN $engine = '' THEN t.latency_half_width
        ELSE sqrt(
            pow(serving_scale_of('time', v.vendor, $engine, v.hardware), 2)
            + pow(t.latency_own_half_width, 2) + pow(t.thin_half_width, 2)
        )
    END AS latency_half_width,
    t.energy_half_width,
    r.weight_bytes,
    f.memory_capacity_bytes,
    c.peak_memory_bytes,
    CASE WHEN c.rented_alike THEN c.price_cloud_usd_per_hour END AS price_cloud_usd_per_hour,
    CASE WHEN c.bought_alike THEN c.price_purchase_usd END AS price_purchase_usd,
    CASE WHEN c.rented_alike AND c.price_cloud_usd_per_hour IS NOT NULL THEN describe_rent(c.price_cloud_usd_per_hour, c.rent_text) ELSE '' END
        AS rent_text,
    CASE WHEN c.bought_alike AND c.price_purchase_usd IS NOT NULL THEN describe_purchase(c.price_purchase_usd, c.purchase_text) ELSE '' END
        AS purchase_text,
    c.unlike_price_text,
    c.rented_half_width,
    c.bought_half_width,
    c.pay,
    c.pue_ratio,
    c.host_share_ratio,
    c.host_energy_share_ratio,
    c.module_power_w,
    c.lifetime_years,
    c.usd_per_kwh,
    c.gco2_per_kwh,
    c.is_available
FROM cube.cost(
    run_ids := $run_ids, utilization := 1e0, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
    gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay
) AS c
JOIN internal.run AS r ON r.run_id = c.run_id
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
LEFT JOIN internal.run_total AS t ON t.run_id = c.run_id
LEFT JOIN (
    SELECT hardware_digest, max(value) AS memory_capacity_bytes
    FROM internal.hardware_fact
    WHERE quantity = 'memory_capacity'
    GROUP BY hardware_digest
) AS f ON f.hardware_digest = c.hardware_digest
ORDER BY c.model, c.hardware, c.precision, c.runtime, c.batch, c.run_id
