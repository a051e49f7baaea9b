/*
record = "Probe"
summary = "Power of a large GEMM and a stream copy, against the power cap and measurements"
grain = "one row per requested run, refused ones included"
table = [
    "hardware", "model.kept", "precision.kept", "status.kept", "average_power_w", "tdp_w", "power_ratio.kept",
    "uncapped_ratio", "unattributed_share_fraction", "compute_utilization_fraction",
    "bandwidth_utilization_fraction", "measured_power_w", "measured_ratio", "reason",
]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of the models matrix_product and stream_copy" }
[columns]
model = { type = "VARCHAR", meaning = "model: matrix_product or stream_copy" }
precision = { type = "VARCHAR", meaning = "precision" }
status = { type = "VARCHAR", meaning = "status: ok, anchored, measured, partial, low, high, or unsupported: a GEMM should draw 0.6 to 1.0 of the cap, a copy 0.75 to 1.25 of its measured power; partial if the GEMM occupies only part of the chip and therefore draws less; anchored if the power limit sets the result; measured if a measured load sets the energies per action" }
average_power_w = { heading = "power", type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time between batches" }
tdp_w = { heading = "power cap", type = "DOUBLE", unit = "W", meaning = "thermal design power of the mode" }
power_ratio = { heading = "power / cap", type = "DOUBLE", null = true, meaning = "average power over the cap" }
uncapped_ratio = { heading = "uncapped power / cap", type = "DOUBLE", null = true, meaning = "power at the full clock, without the cap, over the cap" }
clock_fraction = { type = "DOUBLE", null = true, meaning = "share of the full clock; below 1 where the power cap lowers it" }
attained_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "attained operations per second of the GEMM; null for a copy" }
attained_bytes_per_s = { type = "DOUBLE", null = true, unit = "B/s", meaning = "bytes per second read and written off chip" }
compute_utilization_fraction = { heading = "compute utilization", type = "DOUBLE", null = true, meaning = "operations computed over those that the peak allows, in steady state" }
bandwidth_utilization_fraction = { heading = "bandwidth utilization", type = "DOUBLE", null = true, meaning = "attained over published bandwidth" }
static_share_fraction = { type = "DOUBLE", null = true, meaning = "static energy over total energy" }
unattributed_share_fraction = { type = "DOUBLE", null = true, meaning = "energy that only the power limit implies, over total energy" }
measured_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "mean measured power of this configuration; null without a measurement" }
measured_ratio = { heading = "power / measured power", type = "DOUBLE", null = true, meaning = "predicted over measured power" }
peak_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "dense peak" }
reason = { type = "VARCHAR", meaning = "reason why the status is not ok, or the effect of the cap" }
*/
WITH measured AS (
    SELECT
        hardware,
        model,
        precision,
        CASE WHEN model = 'stream_copy' THEN 'default' ELSE matmul_precision END AS matmul_precision, -- it has no product
        batch,
        runtime,
        avg(power_w) AS power_w
    FROM internal.measurement
    GROUP BY ALL
),
static AS (
    SELECT
        l.run_id,
        joules(sum(l.energy_fj) FILTER (a.part = 'static')) AS static_j,
        joules(
            coalesce(
                sum(l.energy_fj) FILTER (
                    a.component = 'board' AND a.category <> 'unattributed' AND starts_with(a.action, 'unattributed_')
                ),
                0
            )
        ) AS unattributed_j
    FROM internal.run_action AS l
    JOIN internal.action AS a ON a.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
    GROUP BY l.run_id
),
loaded AS (
    SELECT
        l.hardware_digest,
        bool_or(l.covers = 'board') AS is_of_board,
        string_agg(
            printf(
                '%s at %s, batch %d, draws %.3g W%s',
                l.model,
                l.precision,
                l.batch,
                f.value,
                CASE WHEN l.covers = 'board' THEN '' ELSE ' with the system around it' END
            ),
            ' and '
            ORDER BY l.load_index
        ) AS description
    FROM internal.hardware_load AS l
    JOIN internal.hardware_fact AS f
        ON f.hardware_digest = l.hardware_digest AND f.quantity = 'load.' || l.load || '.power'
    GROUP BY l.hardware_digest
),
host AS (
    SELECT l.hardware_digest, max(f.value) AS bandwidth_bytes_per_s
    FROM internal.hardware_link AS l
    JOIN internal.hardware_fact AS f
        ON f.hardware_digest = l.hardware_digest AND f.quantity = 'link.' || l.link || '.bandwidth'
    WHERE l.connects = 'host'
    GROUP BY l.hardware_digest
),
drawn AS (
    SELECT
        r.configured_hardware AS hardware,
        r.architecture,
        r.model,
        r.precision,
        r.refusal,
        s.average_power_w,
        t.value AS tdp_w,
        s.average_power_w / t.value AS power_ratio,
        s.uncapped_power_w / t.value AS uncapped_ratio,
        s.clock_fraction,
        CASE WHEN r.model = 'matrix_product' THEN s.attained_ops_per_s END AS attained_ops_per_s,
        s.bandwidth_utilization_fraction * r.memory_bandwidth_bytes_per_s AS attained_bytes_per_s,
        s.compute_utilization_fraction,
        s.bandwidth_utilization_fraction,
        c.static_j / s.energy_j AS static_share_fraction,
        c.unattributed_j / s.energy_j AS unattributed_share_fraction,
        r.memory_bandwidth_bytes_per_s <= 1.03e0 * h.bandwidth_bytes_per_s AS has_host_memory,
        v.priced_at,
        d.is_of_board AS has_load_of_board,
        d.description AS load,
        m.power_w AS measured_power_w,
        s.average_power_w / m.power_w AS measured_ratio,
        r.peak_ops_per_s,
        r.is_projection,
        r.run_id
    FROM run_configurations AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    LEFT JOIN host AS h ON h.hardware_digest = r.hardware_digest
    LEFT JOIN loaded AS d ON d.hardware_digest = r.hardware_digest
    JOIN internal.hardware_fact AS t ON t.hardware_digest = r.hardware_digest AND t.quantity = 'tdp'
    LEFT JOIN (FROM runs WHERE run_id IN (SELECT unnest($run_ids))) AS s ON s.run_id = r.run_id
    LEFT JOIN static AS c ON c.run_id = r.run_id
    LEFT JOIN measured AS m
        ON m.hardware = r.hardware
        AND m.model = r.model
        AND m.precision = r.precision
        AND m.matmul_precision = r.matmul_precision
        AND m.batch = r.batch
        AND m.runtime = r.runtime
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
compared AS (
    SELECT
        drawn.*,
        coalesce(has_host_memory, FALSE)
        OR compute_utilization_fraction < 0.5e0
        OR attained_ops_per_s / nullif(tdp_w, 0e0) < 0.5e0 * max(attained_ops_per_s / nullif(tdp_w, 0e0)) OVER (PARTITION BY hardware, model) AS is_partial
    FROM drawn
),
judged AS (
    SELECT
        compared.*,
        CASE
            WHEN refusal IS NOT NULL THEN 'unsupported'
            WHEN model = 'stream_copy' AND measured_ratio < 0.75e0 THEN 'low'
            WHEN model = 'stream_copy' AND measured_ratio > 1.25e0 THEN 'high'
            WHEN model = 'matrix_product' AND power_ratio < 0.6e0 AND load IS NOT NULL THEN 'measured'
            WHEN model = 'matrix_product' AND power_ratio < 0.6e0 AND is_partial THEN 'partial'
            WHEN model = 'matrix_product' AND power_ratio < 0.6e0 THEN 'low'
            WHEN power_ratio > 1e0 + 1e-9 THEN 'high'
            WHEN has_load_of_board AND unattributed_share_fraction > 0e0 THEN 'measured'
            WHEN power_ratio >= 0.6e0 AND power_ratio * (1e0 - unattributed_share_fraction) < 0.6e0 THEN 'anchored'
            ELSE 'ok'
        END AS status
    FROM compared
)
SELECT
    hardware, architecture, model, "precision", status, average_power_w, tdp_w, power_ratio, uncapped_ratio,
    clock_fraction, attained_ops_per_s, attained_bytes_per_s, compute_utilization_fraction,
    bandwidth_utilization_fraction, static_share_fraction, unattributed_share_fraction, measured_power_w,
    measured_ratio, peak_ops_per_s, is_projection,
    concat_ws(
        '; ',
        CASE
            WHEN refusal IS NOT NULL THEN refusal
            WHEN clock_fraction < 1e0 THEN printf(
                'would draw %.3g times the power cap at the full clock, so the clock drops to %.3g %%',
                uncapped_ratio,
                clock_fraction * 100e0
            )
            WHEN status = 'measured' THEN printf(
                'counted actions and static power explain %.2f of the cap, and %.2f with unattributed energy fitted to a measurement: %s',
                power_ratio * (1e0 - unattributed_share_fraction),
                power_ratio,
                load
            )
            WHEN status = 'anchored' THEN printf(
                'counted actions and static power explain %.2f of the cap; the assumption on power under load adds %.0f %% of the energy, unattributed',
                power_ratio * (1e0 - unattributed_share_fraction),
                unattributed_share_fraction * 100e0
            )
            WHEN status = 'partial' AND has_host_memory THEN
                'waits for the link to its host, whose memory it uses; power under load is assumed only for the time in which its units work'
            WHEN status = 'partial' AND compute_utilization_fraction < 0.5e0 THEN printf(
                'the product reaches %.0f %% of the peak (off-chip bandwidth is used to %.0f %%), so most of the chip is idle',
                compute_utilization_fraction * 100e0,
                bandwidth_utilization_fraction * 100e0
            )
            WHEN status = 'partial' THEN printf(
                'this precision attains %.3g operations/s per watt of the cap, less than half of the best precision',
                attained_ops_per_s / tdp_w
            )
            WHEN status = 'low' AND model = 'matrix_product' THEN printf(
                'at %.0f %% of the peak, static power is %.0f %% of the power: the cap covers parts that the probe does not use, or energies per action are too low',
                compute_utilization_fraction * 100e0,
                static_share_fraction * 100e0
            )
            WHEN status IN ('low', 'high') THEN printf('%.2f of the measured power', measured_ratio)
            ELSE ''
        END,
        CASE
            WHEN status = 'low' AND model = 'matrix_product' AND priced_at = 'board'
                THEN 'energies were fitted to measured boards, so no unattributed energy is added'
        END
    ) AS reason,
    run_id
FROM judged
ORDER BY architecture, hardware, model, peak_ops_per_s DESC, precision, run_id
