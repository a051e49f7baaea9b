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
