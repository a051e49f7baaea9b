-- What a prediction is scored with: whether the coefficients had seen a measurement, and the model's family.

ALTER TABLE measurement ADD COLUMN seen VARCHAR DEFAULT '';
COMMENT ON COLUMN measurement.seen IS 'Which coefficients were chosen with this row in view; empty where none was';

CREATE OR REPLACE VIEW measurements AS
SELECT
    measurement_id,
    hardware,
    model,
    precision,
    batch,
    runtime,
    scope,
    latency_s,
    energy_j,
    power_w,
    peak_memory_bytes,
    source,
    conditions,
    seen
FROM measurement;
COMMENT ON VIEW measurements IS 'What somebody measured';

CREATE OR REPLACE VIEW prediction_errors AS
SELECT
    m.measurement_id,
    r.run_id,
    m.hardware,
    m.model,
    m.precision,
    m.batch,
    m.runtime,
    m.latency_s AS measured_latency_s,
    r.latency_s AS predicted_latency_s,
    r.latency_s / m.latency_s - 1e0 AS latency_error_fraction,
    m.energy_j AS measured_energy_j,
    r.energy_j AS predicted_energy_j,
    r.energy_j / m.energy_j - 1e0 AS energy_error_fraction,
    r.average_power_w / m.power_w - 1e0 AS power_error_fraction,
    r.peak_memory_bytes / CAST(m.peak_memory_bytes AS DOUBLE) - 1e0 AS memory_error_fraction,
    m.power_w AS measured_power_w,
    r.average_power_w AS predicted_power_w,
    m.peak_memory_bytes AS measured_memory_bytes,
    r.peak_memory_bytes AS predicted_memory_bytes,
    coalesce(e.family, 'other') AS family,
    r.architecture,
    coalesce(m.seen, '') AS seen,
    r.calibration
FROM measurement AS m
JOIN runs AS r
    ON configuration_name(r.hardware, r.power_mode) = m.hardware
    AND r.model = m.model
    AND r.precision = m.precision
    AND r.batch = m.batch
    AND r.runtime = m.runtime
LEFT JOIN model_entry AS e ON e.model = m.model
QUALIFY row_number() OVER (PARTITION BY m.measurement_id ORDER BY r.run_id DESC) = 1;
COMMENT ON VIEW prediction_errors IS 'The newest prediction against each measurement, signed: positive is predicted too high';
