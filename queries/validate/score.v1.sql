/*
name = "validate.score"
record = "PredictionScore"
version = 1
schema = 1
summary = "Predictions against measurements: how far off, which way, and whether they rank as measured"
grain = "one row per group and measured quantity"
order = ["quantity, in the order latency, rate, energy, power, wall power, memory", "hardware", "part"]
[parameters]
hardware = { type = "VARCHAR", default = "", meaning = "only this hardware; empty for all" }
model = { type = "VARCHAR", default = "", meaning = "only this model, or this kind of operator; empty for all" }
precision = { type = "VARCHAR", default = "", meaning = "only this precision; empty for all" }
by = { type = "VARCHAR", default = "runtime", meaning = "what divides a hardware's rows: runtime, family, kind of operator, model, batch, precision, scope of the measurement, hardware alone, or split: how new they are to the coefficients" }
source = { type = "VARCHAR", default = "", meaning = "only measurements whose source holds this text, whatever the case; empty for all" }
calibrations = { type = "VARCHAR[]", default = [], meaning = "calibrations that count, each as a hardware's id, a space and a label; hardware with none of them is scored without" }
[columns]
quantity = { type = "VARCHAR", meaning = "latency, rate (inferences per second), energy, power, wall power (of the system around a board, which the prediction for the board may not exceed) or memory" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
part = { type = "VARCHAR", meaning = "value of what divides the rows; single operators stand apart from models" }
measurement_count = { type = "BIGINT", meaning = "measurements that have this quantity and a prediction" }
mean_error_fraction = { type = "DOUBLE", meaning = "mean absolute relative error" }
median_error_fraction = { type = "DOUBLE", meaning = "median absolute relative error" }
bias_fraction = { type = "DOUBLE", meaning = "mean signed relative error; positive is predicted too high" }
worst_error_fraction = { type = "DOUBLE", meaning = "signed relative error of the row that is furthest off" }
highest_error_fraction = { type = "DOUBLE", meaning = "largest signed relative error" }
worst_case = { type = "VARCHAR", meaning = "that row: model, precision, batch, runtime" }
rank_correlation = { type = "DOUBLE", null = true, meaning = "Spearman's: whether predictions order the rows as measured; null below three different predictions" }
exceeded_count = { type = "BIGINT", null = true, meaning = "of wall power: rows whose system drew less than is predicted for its boards, which cannot be; null for all else" }
seen_fraction = { type = "DOUBLE", meaning = "part of the rows that coefficients, or a calibration, were chosen with their family in view" }
seen = { type = "VARCHAR", meaning = "which coefficients and calibrations those are; empty where none" }
calibration = { type = "VARCHAR", meaning = "calibration of the predictions; none for the class defaults" }
*/
WITH pair AS (
    SELECT
        unnest([
            {'position': 1, 'quantity': 'latency', 'measured': measured_latency_s, 'predicted': predicted_latency_s},
            {
                'position': 2,
                'quantity': 'rate',
                'measured': measured_throughput_per_s,
                'predicted': predicted_throughput_per_s
            },
            {'position': 3, 'quantity': 'energy', 'measured': measured_energy_j, 'predicted': predicted_energy_j},
            {'position': 4, 'quantity': 'power', 'measured': measured_power_w, 'predicted': predicted_power_w},
            {'position': 5, 'quantity': 'wall power', 'measured': measured_wall_power_w, 'predicted': predicted_power_w},
            {
                'position': 6,
                'quantity': 'memory',
                'measured': CAST(measured_memory_bytes AS DOUBLE),
                'predicted': CAST(predicted_memory_bytes AS DOUBLE)
            }
        ]) AS one,
        e.hardware,
        CASE $by
            WHEN 'runtime' THEN e.runtime
            WHEN 'family' THEN e.family
            WHEN 'kind' THEN coalesce(nullif(operator_kind(e.model), ''), 'models')
            WHEN 'hardware' THEN CASE WHEN e.family = 'operator' THEN 'operators' ELSE 'models' END
            WHEN 'model' THEN e.model
            WHEN 'batch' THEN CAST(e.batch AS VARCHAR)
            WHEN 'precision' THEN e.precision
            WHEN 'scope' THEN m.scope
            WHEN 'split' THEN CASE WHEN e.seen <> '' THEN 'fitted' ELSE s.split END
            ELSE error('by is ' || $by || ', expected runtime, family, kind, model, batch, precision, scope, hardware or split')
        END
        || CASE WHEN e.family = 'operator' AND $by IN ('runtime', 'batch', 'precision', 'scope') THEN ', operators' ELSE '' END
        AS part,
        concat_ws(' ', e.model, e.precision, 'batch ' || e.batch, e.runtime) AS label,
        e.seen,
        e.calibration
    FROM calibrated_prediction_errors AS e
    JOIN measurement_splits AS s ON s.measurement_id = e.measurement_id
    JOIN measurements AS m ON m.measurement_id = e.measurement_id
    WHERE ($hardware = '' OR e.hardware = $hardware)
        AND ($model = '' OR e.model = $model OR operator_kind(e.model) = $model)
        AND contains(lower(m.source), lower($source))
        AND ($precision = '' OR e.precision = $precision)
        AND (e.calibration = 'none' OR list_contains($calibrations, split_part(e.hardware, '@', 1) || ' ' || e.calibration))
    QUALIFY row_number() OVER (
        PARTITION BY e.measurement_id
        ORDER BY e.calibration = 'none', e.run_id DESC, e.estimate_id DESC
    ) = 1
),
scored AS (
    SELECT
        p.one.position AS position,
        p.one.quantity AS quantity,
        p.hardware,
        p.part,
        p.label,
        p.seen,
        p.calibration,
        p.one.predicted / p.one.measured - 1e0 AS error_fraction,
        rank() OVER (PARTITION BY p.one.quantity, p.hardware, p.part ORDER BY p.one.measured) AS measured_rank,
        rank() OVER (PARTITION BY p.one.quantity, p.hardware, p.part ORDER BY p.one.predicted) AS predicted_rank
    FROM pair AS p
    WHERE p.one.measured IS NOT NULL AND p.one.predicted IS NOT NULL
)
SELECT
    quantity,
    hardware,
    part,
    count(*) AS measurement_count,
    avg(abs(error_fraction)) AS mean_error_fraction,
    median(abs(error_fraction)) AS median_error_fraction,
    avg(error_fraction) AS bias_fraction,
    arg_max(error_fraction, abs(error_fraction)) AS worst_error_fraction,
    max(error_fraction) AS highest_error_fraction,
    arg_max(label, abs(error_fraction)) AS worst_case,
    CASE WHEN count(DISTINCT predicted_rank) >= 3 THEN corr(measured_rank, predicted_rank) END AS rank_correlation,
    CASE WHEN quantity = 'wall power' THEN count(*) FILTER (WHERE error_fraction > 0e0) END AS exceeded_count,
    CAST(count(*) FILTER (WHERE seen <> '') AS DOUBLE) / count(*) AS seen_fraction,
    coalesce(
        array_to_string(
            list_sort(list_distinct(flatten(list(string_split(seen, '; ')) FILTER (WHERE seen <> '')))), '; '
        ),
        ''
    ) AS seen,
    string_agg(DISTINCT calibration, '; ' ORDER BY calibration) AS calibration
FROM scored
GROUP BY position, quantity, hardware, part
ORDER BY position, hardware, part
