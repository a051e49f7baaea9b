-- Device time of the operators of a model, as a profiler measured it, beside what is predicted for them.

CREATE TABLE operator_measurement (
    hardware VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    batch INTEGER NOT NULL CHECK (batch > 0),
    runtime VARCHAR NOT NULL CHECK (runtime IN ('eager', 'graph', 'fused')),
    operation VARCHAR NOT NULL,
    shapes VARCHAR NOT NULL,
    operator_count INTEGER NOT NULL CHECK (operator_count >= 0),
    kernels VARCHAR NOT NULL CHECK (kernels <> ''),
    call_count INTEGER NOT NULL CHECK (call_count > 0),
    device_time_s DOUBLE NOT NULL CHECK (device_time_s > 0),
    is_overlapping BOOLEAN NOT NULL,
    source VARCHAR NOT NULL CHECK (source <> ''),
    conditions VARCHAR NOT NULL,
    seen VARCHAR NOT NULL
);
COMMENT ON TABLE operator_measurement IS 'Device time of operators inside a model; replaced with the catalogue';
COMMENT ON COLUMN operator_measurement.hardware IS 'Catalogue id';
COMMENT ON COLUMN operator_measurement.model IS 'Model name';
COMMENT ON COLUMN operator_measurement.precision IS 'As measured';
COMMENT ON COLUMN operator_measurement.batch IS 'Samples in one input';
COMMENT ON COLUMN operator_measurement.runtime IS 'eager, graph or fused';
COMMENT ON COLUMN operator_measurement.operation IS 'As in operator_signatures; empty for kernels that no operator of the trace stands for';
COMMENT ON COLUMN operator_measurement.shapes IS 'As in operator_signatures; of a row without operation, the shapes of its kernels'' arguments';
COMMENT ON COLUMN operator_measurement.operator_count IS 'Operators of the trace with this operation and these shapes';
COMMENT ON COLUMN operator_measurement.kernels IS 'ATen operators that run them, in alphabetical order';
COMMENT ON COLUMN operator_measurement.call_count IS 'Calls of those in one pass of the model';
COMMENT ON COLUMN operator_measurement.device_time_s IS 'Of all calls, without the gaps between kernels';
COMMENT ON COLUMN operator_measurement.is_overlapping IS 'Its kernels run side by side in a graph and take less time there: a grouped convolution';
COMMENT ON COLUMN operator_measurement.source IS 'Where the row comes from';
COMMENT ON COLUMN operator_measurement.conditions IS 'What the number depends on';
COMMENT ON COLUMN operator_measurement.seen IS 'Which coefficients were chosen with this row in view; empty where none was';

CREATE VIEW operator_measurements AS
SELECT
    hardware,
    model,
    precision,
    batch,
    runtime,
    operation,
    shapes,
    operator_count,
    kernels,
    call_count,
    device_time_s,
    is_overlapping,
    source,
    conditions,
    seen
FROM operator_measurement;
COMMENT ON VIEW operator_measurements IS 'Measured device time of operators inside models, by operation and shapes, and of kernels without operator';

-- What a profile and a trace can agree on. A profile lists shapes as they stand in memory, so operators that differ in
-- more than this share a row. It does not tell what a concatenation joins; an attention is one kernel.
CREATE VIEW operator_signatures AS
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
    WINDOW before AS (PARTITION BY workload_id ORDER BY operator_index ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS o
LEFT JOIN (
    SELECT a.workload_id, a.operator_index, string_agg(t.shape, ' ' ORDER BY a.access_index) AS shapes
    FROM workload_access AS a
    JOIN workload_tensor AS t ON t.workload_id = a.workload_id AND t.tensor_index = a.tensor_index
    WHERE a.role <> 'output'
    GROUP BY a.workload_id, a.operator_index
) AS p ON p.workload_id = o.workload_id AND p.operator_index = o.operator_index;
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
        coalesce(f.value, 0e0) AS kernel_gap_s
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
    JOIN operator_signatures AS s ON s.workload_id = n.workload_id
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

CREATE VIEW measurement_splits AS
SELECT
    m.measurement_id,
    coalesce(e.family, 'other') AS family,
    CASE
        WHEN coalesce(m.seen, '') <> '' THEN 'fitted'
        WHEN bool_or(coalesce(m.seen, '') <> '') OVER (PARTITION BY m.hardware, coalesce(e.family, 'other'))
            THEN 'same family'
        WHEN bool_or(coalesce(m.seen, '') <> '') OVER (PARTITION BY m.hardware) THEN 'unseen family'
        ELSE 'unseen hardware'
    END AS split
FROM measurement AS m
LEFT JOIN model_entry AS e ON e.model = m.model;
COMMENT ON VIEW measurement_splits IS 'How new each measurement is to the coefficients: fitted (chosen with it in view), same family (with others of its family on its hardware), unseen family (with other families), unseen hardware';
