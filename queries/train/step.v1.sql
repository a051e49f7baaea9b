/*
record = "TrainedStep"
summary = "Training steps of one device: time, energy, MACs and cost, and time by phase"
grain = "one row per requested run that was evaluated"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of training steps, each on one device" }
[columns]
model = { type = "VARCHAR", meaning = "name of the step as a model" }
batch = { type = "INTEGER", meaning = "samples per step of one device" }
step_s = { type = "DOUBLE", unit = "s", meaning = "time of a step" }
step_j = { type = "DOUBLE", unit = "J", meaning = "energy of a step, of one device" }
power_w = { type = "DOUBLE", unit = "W", meaning = "power of one device" }
forward_s = { type = "DOUBLE", unit = "s", meaning = "time of the forward pass and the loss; kernels shared by several phases are split by their operators" }
backward_s = { type = "DOUBLE", unit = "s", meaning = "time of the backward pass" }
again_s = { type = "DOUBLE", unit = "s", meaning = "time of recomputation: activations that were not kept, attention scores" }
exchange_s = { type = "DOUBLE", unit = "s", meaning = "exposed communication time" }
optimizer_s = { type = "DOUBLE", unit = "s", meaning = "time of the optimizer" }
memory_bound_s = { type = "DOUBLE", unit = "s", meaning = "time of operators that memory limits, without communication between devices" }
model_mac_count = { type = "HUGEINT", meaning = "MACs of the forward and backward pass, without those that a mask hides" }
again_mac_count = { type = "HUGEINT", meaning = "MACs of recomputation, without those that a mask hides" }
memory_bytes = { type = "BIGINT", unit = "B", meaning = "peak memory of one device" }
kwh_per_million = { type = "DOUBLE", null = true, unit = "kWh", meaning = "energy of a million samples: work and idling between, times PUE" }
gco2_per_million = { type = "DOUBLE", null = true, unit = "g", meaning = "CO2 of a million samples" }
usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million samples, paid for as in way" }
usd_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of usd_per_million, from throughput and price" }
latency_basis = { type = "VARCHAR", null = true, meaning = "measurements behind the interval of the step time" }
is_available = { type = "BOOLEAN", meaning = "true if it can be bought or rented" }
*/
WITH part AS (
    SELECT
        r.run_id,
        CASE
            WHEN q.module_path = 'optimizer' THEN 'optimizer'
            WHEN q.kind = 'communication' THEN 'exchange'
            WHEN regexp_matches(q.name, '[._]again(:\d+)?$') THEN 'again'
            WHEN regexp_matches(q.name, '[.]backward([.]\w+)?(:\d+)?$') THEN 'backward'
            ELSE 'forward'
        END AS phase,
        p.bottleneck,
        CAST(o.latency_fs AS HUGEINT) AS latency_fs,
        CAST(q.mac_count - q.skipped_mac_count AS HUGEINT) AS mac_count
    FROM internal.run AS r
    JOIN internal.run_operator AS o ON o.run_id = r.run_id
    JOIN internal.run_subgraph AS p ON p.run_id = r.run_id AND p.subgraph_index = o.subgraph_index
    JOIN counted_operators AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
spent AS (
    SELECT
        run_id,
        seconds(coalesce(sum(latency_fs) FILTER (phase = 'forward'), 0)) AS forward_s,
        seconds(coalesce(sum(latency_fs) FILTER (phase = 'backward'), 0)) AS backward_s,
        seconds(coalesce(sum(latency_fs) FILTER (phase = 'again'), 0)) AS again_s,
        seconds(coalesce(sum(latency_fs) FILTER (phase = 'exchange'), 0)) AS exchange_s,
        seconds(coalesce(sum(latency_fs) FILTER (phase = 'optimizer'), 0)) AS optimizer_s,
        seconds(coalesce(sum(latency_fs) FILTER (bottleneck = 'memory' AND phase <> 'exchange'), 0)) AS memory_bound_s,
        CAST(coalesce(sum(mac_count) FILTER (phase IN ('forward', 'backward')), 0) AS HUGEINT) AS model_mac_count,
        CAST(coalesce(sum(mac_count) FILTER (phase = 'again'), 0) AS HUGEINT) AS again_mac_count
    FROM part
    GROUP BY run_id
)
SELECT
    r.position,
    r.run_id,
    r.model,
    r.hardware,
    r.hardware_id,
    r.architecture,
    r.precision,
    r.batch,
    r.runtime,
    r.interval_s AS step_s,
    r.energy_j AS step_j,
    r.average_power_w AS power_w,
    r.latency_half_width,
    r.energy_half_width,
    r.latency_doubt AS latency_basis,
    s.forward_s,
    s.backward_s,
    s.again_s,
    s.exchange_s,
    s.optimizer_s,
    s.memory_bound_s,
    s.model_mac_count,
    s.again_mac_count,
    r.peak_ops_per_s,
    r.memory_bandwidth_bytes_per_s,
    r.peak_memory_bytes AS memory_bytes,
    c.pay,
    c.way,
    c.kwh_per_million,
    c.gco2_per_million,
    c.usd_per_million,
    sqrt(
        pow(r.latency_half_width, 2)
        + pow(c.price_half_width, 2)
    ) AS usd_half_width,
    c.price_text,
    c.unlike_price_text,
    c.is_available
FROM cube.run(run_ids := $run_ids, rows := 'evaluated') AS r
JOIN cube.cost(
    run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
    gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay
) AS c ON c.run_id = r.run_id
JOIN spent AS s ON s.run_id = r.run_id
ORDER BY r.position
