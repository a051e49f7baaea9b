/*
record = "Violation"
summary = "Limits that each configuration misses, and by how much"
grain = "one row per evaluated run and missed limit"
order = ["hardware", "precision", "batch", "runtime", "run_id", "violation_fraction descending, unknown ones first", "limit_name"]
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
limit_name = { type = "VARCHAR", meaning = "limit: latency, energy, energy_per_inference, memory, power, throughput, price or purchase" }
value = { type = "DOUBLE", null = true, meaning = "value of the configuration, in unit; null where no price is known" }
bound = { type = "DOUBLE", meaning = "bound of the limit, in unit" }
excess = { type = "DOUBLE", null = true, meaning = "value - bound, for throughput bound - value, in unit" }
violation_fraction = { type = "DOUBLE", null = true, meaning = "value / bound - 1, for throughput bound / value - 1; null where no price is known" }
unit = { type = "VARCHAR", meaning = "unit of value, bound and excess" }
*/
SELECT
    r.configured_hardware AS hardware,
    r.precision_label AS precision,
    r.batch,
    r.runtime,
    m.limit_name,
    m.value,
    m.bound,
    m.excess,
    m.violation_fraction,
    m.unit,
    m.run_id
FROM recommend.miss(
    run_ids := $run_ids, max_latency_s := $max_latency_s, max_energy_j := $max_energy_j,
    max_energy_per_inference_j := $max_energy_per_inference_j, max_memory_bytes := $max_memory_bytes,
    max_power_w := $max_power_w, min_throughput_per_s := $min_throughput_per_s, max_price_usd_per_hour :=
    $max_price_usd_per_hour, max_purchase_usd := $max_purchase_usd, host_share := $host_share,
    seller := $seller, price_of := $price_of, price_usd := $price_usd, rate_per_s := $rate_per_s
) AS m
JOIN run_configurations AS r ON r.run_id = m.run_id
ORDER BY hardware, precision, batch, runtime, run_id, violation_fraction DESC NULLS FIRST, limit_name
