/*
summary = "Logarithmic error of each prediction, with the groups that intervals are made from"
grain = "one row per measurement and quantity with a prediction"
[columns]
quantity = { type = "VARCHAR", meaning = "quantity: latency (of a batch, or the time between batches where a rate was measured), energy or power (also power at the wall plug, for hardware whose energies are at the wall plug)" }
work = { type = "VARCHAR", meaning = "model, decode or experts of a whole model, else the kind of a single operator" }
precision = { type = "VARCHAR", meaning = "precision as measured" }
hardware = { type = "VARCHAR", meaning = "catalogue id, without its operating point" }
model = { type = "VARCHAR", meaning = "model name" }
family = { type = "VARCHAR", meaning = "family of the model; a single operator is a separate family" }
measured = { type = "DOUBLE", meaning = "measured value, in s or J per batch, or in W" }
predicted = { type = "DOUBLE", meaning = "predicted value, in s or J per batch, or in W" }
half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval that the run states, of the logarithm; null for a single operator" }
seen = { type = "VARCHAR", meaning = "numbers that were fitted to the measurement; empty for none" }
is_calibrated = { type = "BOOLEAN", meaning = "true if the run uses a calibration of its own hardware that was fitted to rows of this runtime and whose errors with families held out are known" }
is_inherited = { type = "BOOLEAN", meaning = "true if the run uses a calibration of other hardware that was fitted to rows of this runtime" }
*/
WITH pair AS (
    SELECT
        p.measurement_id,
        p.architecture,
        work_of(p.model, coalesce(w.work, 'model')) AS work,
        p.runtime,
        p.precision,
        split_part(p.hardware, '@', 1) AS hardware,
        p.model,
        p.batch,
        CASE WHEN operator_kind(p.model) = '' THEN p.family ELSE p.model END AS family,
        p.run_id,
        p.seen,
        unnest([
            {
                'quantity': 'latency',
                'measured': coalesce(p.measured_latency_s, p.batch / p.measured_throughput_per_s),
                'predicted': CASE
                    WHEN p.measured_latency_s IS NULL THEN p.batch / p.predicted_throughput_per_s
                    ELSE p.predicted_latency_s
                END
            },
            {
                'quantity': 'energy',
                'measured': coalesce(
                    p.measured_energy_j,
                    p.measured_power_w * coalesce(p.batch / p.measured_throughput_per_s, p.measured_latency_s)
                ),
                'predicted': CASE
                    WHEN p.measured_energy_j IS NOT NULL THEN p.predicted_energy_j
                    WHEN p.measured_throughput_per_s IS NOT NULL
                        THEN p.predicted_power_w * p.batch / p.predicted_throughput_per_s
                    ELSE p.predicted_power_w * p.predicted_latency_s
                END
            },
            {
                'quantity': 'power',
                'measured': CASE
                    WHEN p.measured_power_w IS NOT NULL THEN p.measured_power_w
                    WHEN p.measured_energy_j IS NULL AND a.hardware IS NOT NULL THEN p.measured_wall_power_w
                    ELSE p.measured_energy_j / coalesce(p.measured_latency_s, p.batch / p.measured_throughput_per_s)
                END,
                'predicted': CASE
                    WHEN p.measured_power_w IS NOT NULL THEN p.predicted_power_w
                    WHEN p.measured_energy_j IS NULL AND a.hardware IS NOT NULL THEN p.predicted_wall_power_w
                    WHEN p.measured_latency_s IS NOT NULL THEN p.predicted_energy_j / p.predicted_latency_s
                    ELSE p.predicted_energy_j / p.batch * p.predicted_throughput_per_s
                END
            }
        ], recursive := TRUE)
    FROM (
        FROM scored_measurements
        QUALIFY row_number() OVER (PARTITION BY measurement_id ORDER BY run_id DESC, estimate_id DESC) = 1
    ) AS p
    LEFT JOIN internal.run AS r ON r.run_id = p.run_id
    LEFT JOIN internal.workload AS w ON w.workload_id = r.workload_id
    -- for these boards the wall plug adds no power to the board's, so its errors are those of the board
    LEFT JOIN (
        SELECT v.hardware
        FROM internal.hardware_version AS v
        JOIN internal.hardware_fact AS f ON f.hardware_digest = v.hardware_digest
        WHERE f.quantity = 'coefficient.system_growth_half_width' AND f.value = 0e0
        GROUP BY v.hardware
    ) AS a ON a.hardware = split_part(p.hardware, '@', 1)
    WHERE $hardware = '' OR p.hardware = $hardware
),
fitted AS (
    SELECT DISTINCT e.calibration_digest, c.hardware, e.runtime
    FROM internal.calibration_error AS e
    JOIN internal.calibration AS c ON c.calibration_digest = e.calibration_digest
    WHERE e.split = 'cross_validated' AND e.family IS NULL AND e.runtime IS NOT NULL AND e.precision IS NOT NULL
)
SELECT
    p.quantity, p.architecture, p.work, p.runtime, p.precision, p.hardware, p.model, p.batch, p.family, p.measured,
    p.predicted,
    ln(p.measured / p.predicted) AS log_error,
    CASE p.quantity
        WHEN 'latency' THEN u.latency_half_width
        WHEN 'energy' THEN u.energy_half_width
        ELSE u.power_half_width
    END AS half_width,
    coalesce(p.seen, '') AS seen,
    p.work = 'model' AND f.calibration_digest IS NOT NULL AS is_calibrated,
    p.work = 'model' AND g.calibration_digest IS NOT NULL AS is_inherited,
    p.measurement_id
FROM pair AS p
LEFT JOIN internal.run AS r ON r.run_id = p.run_id
LEFT JOIN fitted AS f
    ON f.calibration_digest = r.calibration_digest AND f.hardware = p.hardware AND f.runtime = p.runtime
LEFT JOIN fitted AS g
    ON g.calibration_digest = r.calibration_digest AND g.hardware <> p.hardware AND g.runtime = p.runtime
LEFT JOIN internal.run_total AS u ON u.run_id = p.run_id
WHERE p.measured > 0e0 AND p.predicted > 0e0
ORDER BY p.quantity, p.measurement_id
