/*
record = "Violation"
summary = "Limits that each configuration misses, and by how much"
grain = "one row per evaluated run and missed limit"
order = ["hardware", "precision", "batch", "runtime", "run_id", "violation_fraction descending, unknown ones first", "limit_name"]
[parameters]
max_latency_s = { type = "DOUBLE", default = 0.0, meaning = "maximum latency of a batch; 0 for any" }
max_energy_j = { type = "DOUBLE", default = 0.0, meaning = "maximum energy of a batch including its host; 0 for any" }
max_energy_per_inference_j = { type = "DOUBLE", default = 0.0, meaning = "maximum energy of one inference including its host; 0 for any" }
max_memory_bytes = { type = "DOUBLE", default = 0.0, meaning = "maximum memory for weights and activations of the batch; 0 for any" }
max_power_w = { type = "DOUBLE", default = 0.0, meaning = "maximum power of a chip and its host while it runs; 0 for any" }
min_throughput_per_s = { type = "DOUBLE", default = 0.0, meaning = "minimum inferences per second; 0 for any" }
max_price_usd_per_hour = { type = "DOUBLE", default = 0.0, meaning = "maximum price of a chip in a cloud, which must be known; 0 for any" }
max_purchase_usd = { type = "DOUBLE", default = 0.0, meaning = "maximum purchase price, which must be known; 0 for any" }
[columns]
limit_name = { type = "VARCHAR", meaning = "limit: latency, energy, energy_per_inference, memory, power, throughput, price or purchase" }
value = { type = "DOUBLE", null = true, meaning = "value of the configuration, in unit; null where no price is known" }
bound = { type = "DOUBLE", meaning = "bound of the limit, in unit" }
excess = { type = "DOUBLE", null = true, meaning = "value - bound, for throughput bound - value, in unit" }
violation_fraction = { type = "DOUBLE", null = true, meaning = "value / bound - 1, for throughput bound / value - 1; null where no price is known" }
unit = { type = "VARCHAR", meaning = "unit of value, bound and excess" }
*/
WITH one AS (
    SELECT
        hardware, precision, batch, runtime, run_id, latency_s, total_energy_j, total_energy_per_inference_j,
        peak_memory_bytes,
        total_power_w, throughput_per_s, price_cloud_usd_per_hour, price_purchase_usd
    FROM cube.cost(run_ids := $run_ids, host_share := $host_share)
    WHERE status = 'ok'
),
checked AS (
    SELECT
        c.hardware,
        c.precision,
        c.batch,
        c.runtime,
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
    FROM one AS c
)
SELECT hardware, precision, batch, runtime, limit_name, value, bound, excess, violation_fraction, unit, run_id
FROM checked
ORDER BY hardware, precision, batch, runtime, run_id, violation_fraction DESC NULLS FIRST, limit_name
