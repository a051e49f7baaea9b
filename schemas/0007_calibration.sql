-- Calibrations: what a fit to measurements put in place of the class's coefficients, and how well it did. A run names the
-- one that it used; its hardware version has the numbers under it.

CREATE TABLE calibration (
    calibration_digest VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    hardware VARCHAR NOT NULL,
    hardware_digest VARCHAR NOT NULL,
    place VARCHAR NOT NULL,
    formula_version VARCHAR NOT NULL,
    data_digest VARCHAR NOT NULL,
    measurement_count INTEGER NOT NULL CHECK (measurement_count > 0),
    latency_count INTEGER NOT NULL CHECK (latency_count >= 0),
    energy_count INTEGER NOT NULL CHECK (energy_count >= 0),
    runtimes VARCHAR[] NOT NULL,
    precisions VARCHAR[] NOT NULL,
    families VARCHAR[] NOT NULL
);
COMMENT ON TABLE calibration IS 'A calibration that runs have used; never changed, another fit is another digest';
COMMENT ON COLUMN calibration.calibration_digest IS 'Of every byte of its file';
COMMENT ON COLUMN calibration.name IS 'Of its file';
COMMENT ON COLUMN calibration.hardware IS 'Id of the hardware that it is for';
COMMENT ON COLUMN calibration.hardware_digest IS 'hardware_version that it was fitted to: without it, at the default power mode';
COMMENT ON COLUMN calibration.place IS 'shipped, the file, or given by a program';
COMMENT ON COLUMN calibration.formula_version IS 'Digest of the formulas that it was fitted with';
COMMENT ON COLUMN calibration.data_digest IS 'Of the measurements that it was fitted to';
COMMENT ON COLUMN calibration.measurement_count IS 'Measurements that it was fitted to';
COMMENT ON COLUMN calibration.latency_count IS 'Of them, with a latency';
COMMENT ON COLUMN calibration.energy_count IS 'Of them, with an energy';
COMMENT ON COLUMN calibration.runtimes IS 'Of the measurements';
COMMENT ON COLUMN calibration.precisions IS 'Of the measurements';
COMMENT ON COLUMN calibration.families IS 'Of the models measured';

CREATE TABLE calibration_coefficient (
    calibration_digest VARCHAR NOT NULL,
    coefficient_index INTEGER NOT NULL CHECK (coefficient_index >= 0),
    part VARCHAR NOT NULL CHECK (part IN ('time', 'energy', 'static')),
    name VARCHAR NOT NULL,
    default_value DOUBLE NOT NULL,
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    meaning VARCHAR NOT NULL
);
COMMENT ON TABLE calibration_coefficient IS 'What a calibration changed';
COMMENT ON COLUMN calibration_coefficient.calibration_digest IS 'calibration';
COMMENT ON COLUMN calibration_coefficient.coefficient_index IS 'Order in the file';
COMMENT ON COLUMN calibration_coefficient.part IS 'time: a coefficient; energy: a factor on energies per action; static: static power';
COMMENT ON COLUMN calibration_coefficient.name IS 'Coefficient or energy scale';
COMMENT ON COLUMN calibration_coefficient.default_value IS 'Without the calibration';
COMMENT ON COLUMN calibration_coefficient.value IS 'With it';
COMMENT ON COLUMN calibration_coefficient.unit IS 'SI unit; 1 for a factor or share';
COMMENT ON COLUMN calibration_coefficient.meaning IS 'What it is';

CREATE TABLE calibration_error (
    calibration_digest VARCHAR NOT NULL,
    error_index INTEGER NOT NULL CHECK (error_index >= 0),
    quantity VARCHAR NOT NULL CHECK (quantity IN ('latency', 'energy')),
    split VARCHAR NOT NULL CHECK (split IN ('uncalibrated', 'fitted', 'cross_validated')),
    runtime VARCHAR,
    precision VARCHAR,
    batch INTEGER,
    family VARCHAR,
    measurement_count INTEGER NOT NULL CHECK (measurement_count > 0),
    mean_error_fraction DOUBLE NOT NULL,
    median_error_fraction DOUBLE NOT NULL,
    worst_error_fraction DOUBLE NOT NULL,
    rank_correlation DOUBLE
);
COMMENT ON TABLE calibration_error IS 'How far predictions were from the measurements that a calibration was fitted to';
COMMENT ON COLUMN calibration_error.calibration_digest IS 'calibration';
COMMENT ON COLUMN calibration_error.error_index IS 'Order in the file';
COMMENT ON COLUMN calibration_error.quantity IS 'latency or energy';
COMMENT ON COLUMN calibration_error.split IS 'uncalibrated: class defaults; fitted: rows of the fit; cross_validated: each family by a fit to all others';
COMMENT ON COLUMN calibration_error.runtime IS 'Of the rows; null for all';
COMMENT ON COLUMN calibration_error.precision IS 'Of the rows; null for all';
COMMENT ON COLUMN calibration_error.batch IS 'Of the rows; null for all';
COMMENT ON COLUMN calibration_error.family IS 'Of the rows'' models; null for all';
COMMENT ON COLUMN calibration_error.measurement_count IS 'Rows';
COMMENT ON COLUMN calibration_error.mean_error_fraction IS 'Mean absolute relative error';
COMMENT ON COLUMN calibration_error.median_error_fraction IS 'Median absolute relative error';
COMMENT ON COLUMN calibration_error.worst_error_fraction IS 'Signed relative error of the row that is furthest off; positive is predicted too high';
COMMENT ON COLUMN calibration_error.rank_correlation IS 'Spearman''s; null below three rows';

ALTER TABLE run ADD COLUMN calibration_digest VARCHAR DEFAULT '';
COMMENT ON COLUMN run.calibration IS 'Calibration used, by name and first digits of its digest; none for the class defaults';
COMMENT ON COLUMN run.calibration_digest IS 'calibration; empty for none';

CREATE VIEW calibrations AS
WITH score AS (
    SELECT
        calibration_digest,
        quantity,
        arg_max(median_error_fraction, split = 'cross_validated') AS error_fraction
    FROM calibration_error
    WHERE split <> 'uncalibrated' AND runtime IS NULL AND precision IS NULL AND batch IS NULL AND family IS NULL
    GROUP BY calibration_digest, quantity
)
SELECT
    c.name || ' ' || left(c.calibration_digest, 8) AS calibration,
    c.hardware,
    c.place,
    c.formula_version,
    c.measurement_count,
    c.latency_count,
    c.energy_count,
    c.runtimes,
    c.precisions,
    c.families,
    t.error_fraction AS latency_error_fraction,
    e.error_fraction AS energy_error_fraction,
    c.data_digest,
    c.hardware_digest,
    c.calibration_digest
FROM calibration AS c
LEFT JOIN score AS t ON t.calibration_digest = c.calibration_digest AND t.quantity = 'latency'
LEFT JOIN score AS e ON e.calibration_digest = c.calibration_digest AND e.quantity = 'energy';
COMMENT ON VIEW calibrations IS 'Calibrations that runs have used. The error fractions are medians over all rows: of families left out of the fit, or as fitted where there is one alone';

CREATE VIEW calibration_coefficients AS
SELECT
    c.name || ' ' || left(c.calibration_digest, 8) AS calibration,
    c.hardware,
    k.part,
    k.name,
    k.default_value,
    k.value,
    k.value / k.default_value AS ratio,
    k.unit,
    k.meaning,
    k.coefficient_index,
    c.calibration_digest
FROM calibration_coefficient AS k
JOIN calibration AS c ON c.calibration_digest = k.calibration_digest;
COMMENT ON VIEW calibration_coefficients IS 'What each calibration changed: before and after, with the meaning';

CREATE VIEW calibration_errors AS
SELECT
    c.name || ' ' || left(c.calibration_digest, 8) AS calibration,
    c.hardware,
    e.quantity,
    e.split,
    e.runtime,
    e.precision,
    e.batch,
    e.family,
    e.measurement_count,
    e.mean_error_fraction,
    e.median_error_fraction,
    e.worst_error_fraction,
    e.rank_correlation,
    e.error_index,
    c.calibration_digest
FROM calibration_error AS e
JOIN calibration AS c ON c.calibration_digest = e.calibration_digest;
COMMENT ON VIEW calibration_errors IS 'How far each calibration was from its measurements: as fitted, and by fits that had not seen the family';
