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

CREATE VIEW calibrated_prediction_errors AS
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

CREATE OR REPLACE VIEW prediction_errors AS
SELECT
    measurement_id,
    run_id,
    hardware,
    model,
    precision,
    batch,
    runtime,
    measured_latency_s,
    predicted_latency_s,
    latency_error_fraction,
    measured_energy_j,
    predicted_energy_j,
    energy_error_fraction,
    power_error_fraction,
    memory_error_fraction,
    measured_power_w,
    predicted_power_w,
    measured_memory_bytes,
    predicted_memory_bytes,
    family,
    architecture,
    seen,
    calibration
FROM calibrated_prediction_errors
QUALIFY row_number() OVER (PARTITION BY measurement_id ORDER BY run_id DESC) = 1;
COMMENT ON VIEW prediction_errors IS 'The newest prediction against each measurement, signed: positive is predicted too high';

-- What a profile and a trace can agree on. A profile lists shapes as they stand in memory, so operators that differ in
-- more than this share a row. It does not tell what a concatenation joins; an attention is one kernel.
-- Signatures of the operators of these workloads, of all for null. What is not asked about is not aggregated.
CREATE MACRO signatures_among(workload_ids) AS TABLE
SELECT
    o.workload_id,
    o.operator_index,
    CASE
        WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN 'scaled_dot_product_attention'
        ELSE o.operation
    END AS operation,
    CASE
        WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN regexp_replace(o.output_shape, 'x[0-9]+$', '')
        WHEN o.operation = 'cat' THEN ''
        WHEN o.operation IN ('reshape', 'contiguous', 'clone') THEN o.copied_shape || ' -> ' || o.output_shape
        ELSE concat(p.shapes, CASE WHEN p.shapes IS NULL THEN '' ELSE ' -> ' END, o.output_shape)
    END AS shapes,
    CASE WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN 'attention' ELSE o.kind END AS kind,
    o.copied_shape
FROM (
    SELECT
        workload_id,
        operator_index,
        operation,
        kind,
        aten,
        output_shape,
        CASE
            WHEN lag(kind) OVER before = 'view' AND lag(output_element_count) OVER before = output_element_count
                THEN lag(output_shape) OVER before
            ELSE output_shape
        END AS copied_shape
    FROM workload_operator
    WHERE workload_ids IS NULL OR list_contains(workload_ids, workload_id)
    WINDOW before AS (PARTITION BY workload_id ORDER BY operator_index ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS o
LEFT JOIN (
    SELECT a.workload_id, a.operator_index, string_agg(t.shape, ' ' ORDER BY a.access_index) AS shapes
    FROM workload_access AS a
    JOIN workload_tensor AS t ON t.workload_id = a.workload_id AND t.tensor_index = a.tensor_index
    WHERE a.role <> 'output' AND (workload_ids IS NULL OR list_contains(workload_ids, a.workload_id))
    GROUP BY a.workload_id, a.operator_index
) AS p ON p.workload_id = o.workload_id AND p.operator_index = o.operator_index;

CREATE VIEW operator_signatures AS
SELECT workload_id, operator_index, operation, shapes, kind, copied_shape
FROM signatures_among(CAST(NULL AS INTEGER[]));
COMMENT ON VIEW operator_signatures IS 'What tells operators of a workload apart in a profile: operation and shapes read -> written, of a copy the shape that it makes contiguous. kind is that of the operator, attention for its three operators';

CREATE VIEW operator_prediction_errors AS
WITH newest AS (
    SELECT
        m.hardware,
        m.model,
        m.precision,
        m.batch,
        m.runtime,
        r.run_id,
        r.workload_id,
        r.calibration,
        v.architecture,
        coalesce(f.value, 0e0) * coalesce(g.value, 1e0) AS kernel_gap_s
    FROM (
        SELECT DISTINCT hardware, model, precision, batch, runtime
        FROM operator_measurement
    ) AS m
    JOIN hardware_version AS v ON split_part(m.hardware, '@', 1) = v.hardware
    JOIN run AS r
        ON r.hardware_digest = v.hardware_digest
        AND configuration_name(v.hardware, r.power_mode) = m.hardware
        AND r.precision = m.precision
        AND r.batch = m.batch
        AND r.runtime = m.runtime
    JOIN workload AS w ON w.workload_id = r.workload_id AND w.model = m.model
    LEFT JOIN hardware_fact AS f
        ON f.hardware_digest = v.hardware_digest AND f.quantity = 'coefficient.kernel_gap'
    LEFT JOIN hardware_fact AS g
        ON g.hardware_digest = v.hardware_digest AND g.quantity = 'coefficient.launch_time_scale'
    WHERE r.refusal IS NULL
    QUALIFY row_number() OVER (
        PARTITION BY m.hardware, m.model, m.precision, m.batch, m.runtime ORDER BY r.run_id DESC
    ) = 1
),
predicted AS (
    SELECT
        n.run_id,
        s.operation,
        s.shapes,
        s.kind,
        count(*) AS operator_count,
        CAST(sum(o.latency_fs) AS DOUBLE) / 1e15 - count(*) * any_value(n.kernel_gap_s) AS device_time_s
    FROM newest AS n
    JOIN signatures_among((SELECT coalesce(list(DISTINCT m.workload_id), []) FROM newest AS m)) AS s
        ON s.workload_id = n.workload_id
    JOIN run_operator AS o ON o.run_id = n.run_id AND o.operator_index = s.operator_index
    GROUP BY n.run_id, s.operation, s.shapes, s.kind
)
SELECT
    n.run_id,
    m.hardware,
    m.model,
    m.precision,
    m.batch,
    m.runtime,
    p.kind,
    m.operation,
    m.shapes,
    m.operator_count,
    m.kernels,
    m.call_count,
    m.device_time_s AS measured_s,
    p.device_time_s AS predicted_s,
    p.device_time_s / m.device_time_s - 1e0 AS error_fraction,
    m.device_time_s / m.operator_count AS measured_per_operator_s,
    m.is_overlapping,
    coalesce(e.family, 'other') AS family,
    n.architecture,
    m.seen,
    n.calibration
FROM operator_measurement AS m
JOIN newest AS n
    ON n.hardware = m.hardware
    AND n.model = m.model
    AND n.precision = m.precision
    AND n.batch = m.batch
    AND n.runtime = m.runtime
JOIN predicted AS p
    ON p.run_id = n.run_id
    AND p.operation = m.operation
    AND p.shapes = m.shapes
    AND p.operator_count = m.operator_count
LEFT JOIN model_entry AS e ON e.model = m.model;
COMMENT ON VIEW operator_prediction_errors IS 'Measured device time of operators against the newest prediction of the same configuration, without kernel gaps; signed: positive is predicted too high';
