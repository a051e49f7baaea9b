/*
record = "ServedPhase"
summary = "Prefill and decode of a served language model: time, energy and cost per token, and bottleneck"
grain = "one row per served configuration and phase"
[parameters]
prefill_ids = { type = "INTEGER[]", meaning = "prefill runs on one device, one per served configuration" }
decode_ids = { type = "INTEGER[]", meaning = "decode-step runs of the same configurations, in the same order" }
run_ids = { type = "INTEGER[]", meaning = "all runs of prefill_ids and decode_ids" }
device_counts = { type = "INTEGER[]", meaning = "devices per configuration" }
batches = { type = "INTEGER[]", meaning = "concurrent sequences of each configuration" }
prefill_passes = { type = "INTEGER[]", meaning = "prefill passes that the prompts of the batch take, because a step of the engine is limited in tokens; 0 where the runs are of another batch, of which only the shares of the bounds are used" }
prompt = { type = "INTEGER", meaning = "tokens per prompt" }
steps = { type = "INTEGER", meaning = "decode steps per request: output tokens except the first, which ends the prefill; at least 1" }
engine = { type = "VARCHAR", meaning = "engine, as serving_predictions names it" }
prefill_s = { type = "DOUBLE[]", meaning = "seconds of the prefill of each configuration's batch, including the engine's own time" }
decode_s = { type = "DOUBLE[]", meaning = "seconds of all decode steps together, of each configuration's batch" }
prefill_j = { type = "DOUBLE[]", meaning = "joules of the prefill of each configuration's batch, of all devices together" }
decode_j = { type = "DOUBLE[]", meaning = "joules of all decode steps together, of all devices together" }
[columns]
place = { type = "BIGINT", meaning = "position of the configuration in decode_ids, from 1" }
phase = { type = "VARCHAR", meaning = "prefill or decode" }
model = { type = "VARCHAR", meaning = "name of the pass as a model" }
label = { heading = "hardware", shown = "hardware", type = "VARCHAR", meaning = "hardware, with xN for N devices, and the precision where configurations differ in it" }
batch = { type = "INTEGER", meaning = "concurrent sequences" }
device_count = { type = "INTEGER", meaning = "devices that work together" }
token_count = { type = "BIGINT", meaning = "tokens of the batch: those of its prompts, or those that its decode steps generate" }
phase_s = { heading = "time", type = "DOUBLE", unit = "s", meaning = "time of the phase, all decode steps together" }
phase_j = { type = "DOUBLE", unit = "J", meaning = "energy of all devices in the phase" }
tokens_per_s = { type = "DOUBLE", unit = "1/s", meaning = "tokens per second of all devices together, while the phase lasts" }
tokens_per_s_per_device = { type = "DOUBLE", unit = "1/s", meaning = "tokens per second of one device" }
energy_per_token_j = { heading = "J/token", type = "DOUBLE", unit = "J", meaning = "energy of all devices, for one token of the phase" }
device_power_w = { heading = "power per device", type = "DOUBLE", unit = "W", meaning = "power of one device in the phase" }
run_latency_s = { heading = "one pass without engine", type = "DOUBLE", unit = "s", meaning = "latency of the stored pass (the prefill, or one decode step at the middle of the output) without the engine's time, at the nearest stored batch" }
run_energy_j = { type = "DOUBLE", unit = "J", meaning = "energy of the stored pass on one device" }
latency_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of the time to first token or of the time between tokens, from measurements of served models" }
energy_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of the energy per request or per output token, from measurements of served models" }
evidence = { type = "VARCHAR", meaning = "measurements of this engine: chip (on this chip), vendor (on other chips of its vendor) or empty (on neither)" }
vendor = { type = "VARCHAR", meaning = "vendor of the hardware" }
bound = { type = "VARCHAR", meaning = "largest part of the time: compute, operands (units whose MACs take less than a tenth of their time), memory, launch, communication, or engine (time that the engine adds to the passes)" }
bound_fraction = { type = "DOUBLE", meaning = "share of the phase's time in the part named in bound" }
kwh_per_million = { type = "DOUBLE", null = true, unit = "kWh", meaning = "energy of a million tokens of the phase: work and idling between, times PUE" }
gco2_per_million = { type = "DOUBLE", null = true, unit = "g", meaning = "CO2 of a million tokens of the phase" }
rented_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million tokens of the phase, all devices rented" }
bought_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million tokens of the phase, all devices bought" }
usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million tokens of the phase, paid for as in way" }
usd_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of usd_per_million, from throughput and price" }
activation_bytes = { type = "BIGINT", unit = "B", meaning = "peak activations of the stored pass on one device" }
run_id = { heading = "run", type = "INTEGER", meaning = "number of the pass's run" }
*/
WITH place AS (
    SELECT unnest(range(1, len($decode_ids) + 1)) AS place
),
served AS (
    SELECT
        place,
        'prefill' AS phase,
        CAST($prefill_ids AS INTEGER[])[place] AS run_id,
        CAST($prompt AS BIGINT) AS each,
        CAST($prefill_s AS DOUBLE[])[place] AS phase_s,
        CAST($prefill_j AS DOUBLE[])[place] AS phase_j,
        CAST($prefill_passes AS INTEGER[])[place] AS pass_count,
        CAST($batches AS INTEGER[])[place] AS batch,
        CAST($device_counts AS INTEGER[])[place] AS device_count
    FROM place
    UNION ALL
    SELECT
        place,
        'decode',
        CAST($decode_ids AS INTEGER[])[place],
        CAST($steps AS BIGINT),
        CAST($decode_s AS DOUBLE[])[place],
        CAST($decode_j AS DOUBLE[])[place],
        CASE WHEN CAST($prefill_passes AS INTEGER[])[place] > 0 THEN $steps ELSE 0 END,
        CAST($batches AS INTEGER[])[place],
        CAST($device_counts AS INTEGER[])[place]
    FROM place
),
spent AS (FROM cube.bound(run_ids := $run_ids)),
-- The time of a phase is that of its kernels, by bound, and the rest, which is the engine's. Where the whole phase
-- takes less than the run's kernels, the kernels are scaled to the phase.
counted AS (
    SELECT
        e.place,
        e.phase,
        e.run_id,
        e.phase_s,
        least(CASE WHEN e.pass_count > 0 THEN e.pass_count END, e.phase_s / seconds(w.latency_fs)) AS pass_count,
        seconds(w.latency_fs) AS pass_s
    FROM served AS e
    JOIN (SELECT run_id, sum(latency_fs) AS latency_fs FROM spent GROUP BY run_id) AS w ON w.run_id = e.run_id
),
bounded AS (
    SELECT place, phase, arg_max(bound, part_s) AS bound, max(part_s) AS part_s
    FROM (
        SELECT e.place, e.phase, b.bound, seconds(b.latency_fs) * e.pass_count AS part_s
        FROM counted AS e
        JOIN spent AS b ON b.run_id = e.run_id
        UNION ALL
        SELECT place, phase, 'engine', greatest(phase_s - pass_s * pass_count, 0e0)
        FROM counted
    )
    GROUP BY place, phase
),
powered AS (
    SELECT
        e.place, e.phase, e.run_id, e.phase_s, e.phase_j, e.device_count,
        c.model, c.hardware, c.hardware_id, c.architecture, c.precision, e.batch, c.runtime, c.pay,
        c.is_available, c.rented_half_width, c.bought_price_half_width, c.rented_seller, c.bought_seller,
        c.rented_alike, c.bought_alike, c.rent_text, c.purchase_text, c.unlike_price_text,
        c.latency_s AS run_latency_s,
        c.energy_j AS run_energy_j,
        c.idle_power_w AS idle_w,
        c.pue_ratio AS pue,
        c.price_cloud_usd_per_hour AS usd_per_hour,
        c.price_purchase_usd AS purchase_usd,
        c.host_share_ratio AS host_share,
        c.host_energy_share_ratio AS host_energy_share,
        c.module_power_w AS module_w,
        c.utilization_fraction AS utilization,
        c.lifetime_years, c.hours_per_year, c.usd_per_kwh, c.gco2_per_kwh,
        e.each * e.batch AS token_count,
        e.each * e.batch / e.phase_s AS tokens_per_s,
        e.each * e.batch / e.phase_s / e.device_count AS throughput_per_s,
        e.phase_j / (e.each * e.batch) AS energy_per_inference_j
    FROM served AS e
    JOIN cube.cost(
        run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
        gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay
    ) AS c ON c.run_id = e.run_id
    WHERE c.reason = ''
),
doubted AS (
    SELECT
        p.*,
        sqrt(
            pow(serving_scale_of('time', v.vendor, $engine, v.hardware), 2)
            + CASE WHEN p.phase = 'prefill' THEN pow(unnamed_backend_width(p.architecture, v.vendor, $engine), 2) ELSE 0e0 END
            + pow(t.latency_own_half_width, 2) + pow(t.thin_half_width, 2)
        ) AS latency_half_width,
        sqrt(
            pow(served_energy_half_width(
                sqrt(
                    pow(serving_scale_of('time', v.vendor, $engine, v.hardware), 2)
                    + CASE WHEN p.phase = 'prefill' THEN pow(unnamed_backend_width(p.architecture, v.vendor, $engine), 2) ELSE 0e0 END
                ),
                serving_scale_of('power', v.vendor, $engine, v.hardware)
            ), 2)
            + pow(t.energy_own_half_width, 2) + pow(t.thin_half_width, 2)
        ) AS energy_half_width,
        v.vendor,
        (
            SELECT
                CASE
                    WHEN max(s.level) < 2 THEN ''
                    WHEN list_contains(string_split(max_by(s.chips, s.level), ' '), v.hardware) THEN 'chip'
                    ELSE 'vendor'
                END
            FROM internal.serving_scale AS s
            WHERE s.quantity = 'time' AND s.vendor IN ('', v.vendor) AND s.engine IN ('', bare_engine($engine))
        ) AS evidence
    FROM powered AS p
    JOIN internal.run AS r ON r.run_id = p.run_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    JOIN internal.run_total AS t ON t.run_id = p.run_id
),
paid AS (
    SELECT p.*, p.{costs}
    FROM doubted AS p
),
asked AS (
    SELECT
        q.*,
        q.bought_price_half_width * q.purchase_usd_per_million
            / (q.purchase_usd_per_million + q.energy_usd_per_million) AS bought_half_width,
        CASE
            WHEN q.pay <> 'bought' AND q.rented_alike AND q.rented_usd_per_million IS NOT NULL
                AND NOT (q.pay = 'both' AND coalesce(q.bought_alike AND q.bought_usd_per_million < q.rented_usd_per_million, FALSE))
                THEN 'rented'
            WHEN q.pay <> 'rented' AND q.bought_alike AND q.bought_usd_per_million IS NOT NULL THEN 'bought'
        END AS way
    FROM paid AS q
)
SELECT
    a.place, a.phase, a.model,
    concat_ws(
        ' ',
        a.hardware,
        CASE WHEN a.device_count > 1 THEN 'x' || a.device_count END,
        CASE WHEN min(a.precision) OVER () <> max(a.precision) OVER () THEN a.precision END
    ) AS label,
    a.hardware, a.hardware_id, a.architecture, a.precision, a.batch, a.runtime, a.device_count, a.token_count,
    a.phase_s, a.phase_j, a.tokens_per_s,
    a.throughput_per_s AS tokens_per_s_per_device,
    a.energy_per_inference_j AS energy_per_token_j,
    a.phase_j / a.phase_s / a.device_count AS device_power_w,
    a.run_latency_s, a.run_energy_j, a.latency_half_width, a.energy_half_width, a.evidence, a.vendor,
    b.bound,
    b.part_s / a.phase_s AS bound_fraction,
    a.pay, a.kwh_per_million, a.gco2_per_million, a.rented_usd_per_million, a.bought_usd_per_million,
    by_way(a.way, a.rented_usd_per_million, a.bought_usd_per_million) AS usd_per_million,
    a.way,
    coalesce(by_way(a.way, a.rented_half_width, a.bought_half_width), 0e0) AS price_half_width,
    coalesce(by_way(a.way, a.rented_seller, a.bought_seller), '') AS seller,
    coalesce(by_way(a.way, describe_rent(a.usd_per_hour, a.rent_text), describe_purchase(a.purchase_usd, a.purchase_text)), '') AS price_text,
    a.unlike_price_text,
    sqrt(
        pow(a.latency_half_width, 2)
        + pow(by_way(a.way, a.rented_half_width, a.bought_half_width), 2)
    ) AS usd_half_width,
    r.activation_bytes,
    a.is_available, a.run_id
FROM asked AS a
JOIN bounded AS b ON b.place = a.place AND b.phase = a.phase
JOIN internal.run AS r ON r.run_id = a.run_id
ORDER BY a.place, a.phase DESC
