/*
record = "Score"
summary = "One measurement next to the prediction of the same configuration"
grain = "one row"
[parameters]
measurement_id = { type = "INTEGER", meaning = "number of the measurement" }
run_id = { type = "INTEGER", meaning = "number of the run that predicts it" }
[columns]
model = { type = "VARCHAR", meaning = "name as the measurement stores it" }
hardware = { type = "VARCHAR", meaning = "id of the hardware description that predicts" }
precision = { type = "VARCHAR", meaning = "precision" }
scope = { type = "VARCHAR", meaning = "scope of measured energy and power" }
measured_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "measured median latency per batch; null for a measurement of energy alone" }
predicted_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "predicted latency per batch; null where the hardware cannot run it" }
latency_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of measured over predicted latency; null without a prediction" }
latency_ratio = { type = "DOUBLE", null = true, meaning = "predicted over measured" }
measured_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "measured energy per batch; null without a counter" }
predicted_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "predicted energy per batch; null where the hardware cannot run it" }
energy_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of measured over predicted energy; null without a prediction" }
energy_ratio = { type = "DOUBLE", null = true, meaning = "predicted over measured" }
measured_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "measured mean power; null without a counter" }
predicted_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "predicted mean power" }
power_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of measured over predicted power; null without a prediction" }
power_ratio = { type = "DOUBLE", null = true, meaning = "predicted over measured" }
measured_peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "peak memory as the framework reports it; null where it does not" }
predicted_peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "memory that the framework would report for weights and activations; null where its workspaces are unknown" }
memory_ratio = { type = "DOUBLE", null = true, meaning = "predicted over measured" }
refusal = { type = "VARCHAR", null = true, meaning = "reason for a missing prediction; null otherwise" }
source = { type = "VARCHAR", meaning = "source of the measurement" }
conditions = { type = "VARCHAR", meaning = "conditions of the measurement" }
*/
SELECT
    m.measurement_id,
    n.run_id,
    m.model, m.hardware, m.precision, m.batch, m.runtime, m.scope,
    m.latency_s AS measured_latency_s,
    r.latency_s AS predicted_latency_s,
    r.latency_half_width,
    r.latency_s / m.latency_s AS latency_ratio,
    m.energy_j AS measured_energy_j,
    r.energy_j AS predicted_energy_j,
    r.energy_half_width,
    r.energy_j / m.energy_j AS energy_ratio,
    m.power_w AS measured_power_w,
    r.average_power_w AS predicted_power_w,
    t.power_half_width,
    r.average_power_w / m.power_w AS power_ratio,
    m.peak_memory_bytes AS measured_peak_memory_bytes,
    CAST(p.allocated_bytes AS BIGINT) AS predicted_peak_memory_bytes,
    p.allocated_bytes / CAST(m.peak_memory_bytes AS DOUBLE) AS memory_ratio,
    n.refusal,
    m.source, m.conditions
FROM internal.measurement AS m
JOIN internal.run AS n ON n.run_id = $run_id
LEFT JOIN runs AS r ON r.run_id = n.run_id
LEFT JOIN internal.run_total AS t ON t.run_id = n.run_id
LEFT JOIN allocators AS o ON o.hardware_digest = n.hardware_digest
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN o.workspace_bytes IS NULL THEN r.peak_memory_bytes
            WHEN m.stream_count IS NOT NULL
                THEN CAST(r.peak_memory_bytes + least(m.stream_count, o.stream_limit) * o.workspace_bytes AS BIGINT)
        END AS allocated_bytes
) AS p
WHERE m.measurement_id = $measurement_id
ORDER BY m.measurement_id
