-- How many streams a measuring process had used, because a framework keeps a workspace for each; and predictions of what
-- such a framework reports.
-- Predictions are summed up for the runs of measured configurations alone: the newest run of each is found from keys
-- first, and only its rows are read. Filters on a measurement reach its keys, because they partition the choice.

ALTER TABLE measurement ADD COLUMN stream_count INTEGER;
COMMENT ON COLUMN measurement.stream_count IS 'Streams of the measuring process that had run a product by then; null where not known';

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
    seen,
    stream_count
FROM measurement;
COMMENT ON VIEW measurements IS 'What somebody measured';

CREATE VIEW allocators AS
SELECT
    hardware_digest,
    max(value) FILTER (quantity = 'coefficient.allocator_workspace') AS workspace_bytes,
    max(value) FILTER (quantity = 'coefficient.allocator_stream_limit') AS stream_limit
FROM hardware_fact
WHERE quantity IN ('coefficient.allocator_workspace', 'coefficient.allocator_stream_limit')
GROUP BY hardware_digest;
COMMENT ON VIEW allocators IS 'Hardware on which a framework''s allocator keeps a workspace for each stream that it has used';

CREATE MACRO allocated_bytes(run_bytes, workspace_bytes, stream_limit, stream_count) AS
    CASE
        WHEN workspace_bytes IS NULL THEN run_bytes
        WHEN stream_count IS NOT NULL THEN CAST(run_bytes + least(stream_count, stream_limit) * workspace_bytes AS BIGINT)
    END;

CREATE OR REPLACE VIEW calibrated_prediction_errors AS
SELECT
    n.measurement_id,
    n.run_id,
    n.hardware,
    n.model,
    n.precision,
    n.batch,
    n.runtime,
    n.measured_latency_s,
    CAST(x.latency_fs AS DOUBLE) / 1e15 AS predicted_latency_s,
    CAST(x.latency_fs AS DOUBLE) / 1e15 / n.measured_latency_s - 1e0 AS latency_error_fraction,
    n.measured_energy_j,
    joules(x.energy_fj) AS predicted_energy_j,
    joules(x.energy_fj) / n.measured_energy_j - 1e0 AS energy_error_fraction,
    CAST(x.energy_fj AS DOUBLE) / CAST(x.latency_fs AS DOUBLE) / n.measured_power_w - 1e0 AS power_error_fraction,
    n.predicted_memory_bytes / CAST(n.measured_memory_bytes AS DOUBLE) - 1e0 AS memory_error_fraction,
    n.measured_power_w,
    CAST(x.energy_fj AS DOUBLE) / CAST(x.latency_fs AS DOUBLE) AS predicted_power_w,
    n.measured_memory_bytes,
    n.predicted_memory_bytes,
    coalesce(e.family, 'other') AS family,
    n.architecture,
    concat_ws(
        '; ',
        nullif(n.measurement_seen, ''),
        CASE WHEN list_contains(c.families, coalesce(e.family, 'other')) THEN 'calibration ' || n.calibration END
    ) AS seen,
    n.calibration
FROM (
    SELECT
        m.measurement_id,
        r.run_id,
        r.workload_id,
        m.hardware,
        m.model,
        m.precision,
        m.batch,
        m.runtime,
        m.latency_s AS measured_latency_s,
        m.energy_j AS measured_energy_j,
        m.power_w AS measured_power_w,
        m.peak_memory_bytes AS measured_memory_bytes,
        m.seen AS measurement_seen,
        allocated_bytes(
            r.weight_bytes + r.activation_bytes, o.workspace_bytes, o.stream_limit, m.stream_count
        ) AS predicted_memory_bytes,
        r.calibration,
        r.calibration_digest,
        v.architecture
    FROM measurement AS m
    JOIN hardware_version AS v ON split_part(m.hardware, '@', 1) = v.hardware
    JOIN run AS r
        ON r.hardware_digest = v.hardware_digest
        AND configuration_name(v.hardware, r.power_mode) = m.hardware
        AND r.precision = m.precision
        AND r.batch = m.batch
        AND r.runtime = m.runtime
    JOIN workload AS w ON w.workload_id = r.workload_id AND w.model = m.model
    LEFT JOIN allocators AS o ON o.hardware_digest = r.hardware_digest
    WHERE r.refusal IS NULL
    QUALIFY row_number() OVER (
        PARTITION BY m.measurement_id, m.hardware, m.model, m.precision, m.batch, m.runtime, r.calibration
        ORDER BY r.run_id DESC
    ) = 1
) AS n
JOIN LATERAL (
    SELECT s.latency_fs, l.energy_fj
    FROM (
        SELECT sum(t.latency_fs) AS latency_fs
        FROM run_subgraph AS t
        WHERE t.run_id = n.run_id
    ) AS s
    CROSS JOIN (
        SELECT sum(q.energy_fj) AS energy_fj
        FROM ledger_line AS q
        WHERE q.run_id = n.run_id
    ) AS l
) AS x ON x.latency_fs IS NOT NULL AND x.energy_fj IS NOT NULL
LEFT JOIN calibration AS c ON c.calibration_digest = n.calibration_digest
LEFT JOIN model_entry AS e ON e.model = n.model;
COMMENT ON VIEW calibrated_prediction_errors IS 'The newest prediction under each calibration against each measurement, signed: positive is predicted too high. seen says which coefficients were chosen with the row or its family in view';
