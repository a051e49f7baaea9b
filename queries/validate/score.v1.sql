/*
record = "PredictionScore"
summary = "Predictions against measurements: errors, bias and rank correlation"
grain = "one row per group and measured quantity"
order = ["quantity, times and rates before energies, powers and memory", "hardware", "of sources measurement_count descending", "part"]
[parameters]
model = { type = "VARCHAR", default = "", meaning = "model, kind of operator, or text that names of served models contain, to restrict to; empty for all" }
precision = { type = "VARCHAR", default = "", meaning = "precision to restrict to; empty for all" }
by = { type = "VARCHAR", default = "runtime", meaning = "property that divides a chip's rows: runtime (for served models, the engine), family, kind of operator, model, batch, precision, scope of the measurement, hardware alone, or split (fitted, same family, unseen family or unseen hardware); source and quantity divide the rows of all hardware together, and all does not divide them" }
source = { type = "VARCHAR", default = "", meaning = "text that source names must contain, ignoring case; empty for all" }
calibrations = { type = "VARCHAR[]", default = [], meaning = "calibrations to use, each as a chip's id, a space and a label; hardware without one is scored uncalibrated" }
[columns]
quantity = { type = "VARCHAR", meaning = "quantity as in prediction_errors; wall_power_w is scored against the run at the boundary system" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default; all where rows of several are together" }
part = { type = "VARCHAR", meaning = "value of the dividing property, for sources the short name (prediction_errors has the full one); single operators, models and served models are separate" }
measurement_count = { heading = "measurements", type = "BIGINT", meaning = "measurements with this quantity and a prediction" }
mean_error_fraction = { heading = "mean error", type = "DOUBLE", meaning = "mean absolute relative error" }
median_error_fraction = { heading = "median error", type = "DOUBLE", meaning = "median absolute relative error" }
bias_fraction = { heading = "bias", type = "DOUBLE", meaning = "mean signed relative error; positive is predicted too high" }
worst_error_fraction = { heading = "worst error", type = "DOUBLE", meaning = "signed relative error of the worst row" }
highest_error_fraction = { type = "DOUBLE", meaning = "largest signed relative error" }
worst_case = { type = "VARCHAR", meaning = "worst row: model, precision, batch, runtime; for served models also tokens in and out, devices and engine" }
rank_correlation = { type = "DOUBLE", null = true, meaning = "Spearman's rank correlation; null below three different predictions" }
covered_fraction = { heading = "inside 80 % interval", type = "DOUBLE", null = true, meaning = "share of the rows whose interval holds the measured value; null where predictions have none" }
ranged_count = { type = "BIGINT", meaning = "measurements whose prediction has an 80 % interval" }
seen_fraction = { heading = "used for fitting", type = "DOUBLE", meaning = "share of the rows whose model family was used to fit coefficients or a calibration" }
seen = { type = "VARCHAR", meaning = "coefficients and calibrations fitted to these rows; empty for none" }
calibration = { type = "VARCHAR", meaning = "calibration of the predictions; none for the class defaults" }
*/
WITH scored AS (
    SELECT
        e.quantity,
        CASE
            WHEN $by = 'all' OR $by IN ('source', 'quantity') AND $hardware = '' THEN 'all'
            ELSE e.hardware
        END AS hardware,
        CASE $by
            WHEN 'runtime' THEN coalesce(e.runtime, e.engine)
            WHEN 'family' THEN e.family
            WHEN 'kind' THEN CASE
                WHEN e.runtime IS NULL THEN e.family
                ELSE coalesce(nullif(operator_kind(e.model), ''), 'models')
            END
            WHEN 'hardware' THEN CASE e.family WHEN 'operator' THEN 'operators' WHEN 'served' THEN 'served' ELSE 'models' END
            WHEN 'model' THEN e.model
            WHEN 'batch' THEN CAST(e.batch AS VARCHAR)
            WHEN 'precision' THEN e.precision
            WHEN 'scope' THEN e.scope
            WHEN 'source' THEN regexp_replace(e.source, '(, |: ).*$', '')
            WHEN 'engine' THEN CASE WHEN e.runtime IS NULL THEN coalesce(nullif(e.engine, ''), 'not told') ELSE 'none' END
            WHEN 'quantity' THEN CASE e.family WHEN 'operator' THEN 'operators' WHEN 'served' THEN 'served' ELSE 'models' END
            WHEN 'all' THEN 'overall'
            WHEN 'split' THEN CASE WHEN e.seen <> '' THEN 'fitted' ELSE coalesce(s.split, v.split) END
            ELSE error(
                'by is ' || $by || ', expected runtime, family, kind, model, batch, precision, scope, hardware, split, '
                || 'source, engine, quantity or all'
            )
        END
        || CASE
            WHEN $by NOT IN ('runtime', 'batch', 'precision', 'scope', 'source', 'engine', 'split') THEN ''
            WHEN e.family = 'operator' AND $by <> 'split' THEN ', operators'
            WHEN e.family = 'served' AND $by <> 'engine' THEN ', served'
            ELSE ''
        END AS part,
        concat_ws(
            ' ',
            e.model,
            e.precision,
            'batch ' || printf('%g', e.batch),
            e.runtime,
            printf('%g + %g tokens', v.prompt_tokens, v.output_tokens),
            CASE WHEN v.device_count > 1 THEN printf('%d devices', v.device_count) END,
            nullif(e.engine, '')
        ) AS label,
        e.seen,
        e.calibration,
        e.error_fraction,
        e.measured BETWEEN e.low AND e.high AS is_covered,
        e.measured,
        e.predicted
    FROM calibrated_prediction_errors AS e
    LEFT JOIN measurement_splits AS s ON s.measurement_id = e.measurement_id
    LEFT JOIN serving_measurements AS v ON v.serving_measurement_id = e.serving_measurement_id
    WHERE ($hardware = '' OR e.hardware = $hardware)
        AND (
            $model = ''
            OR e.model = $model
            OR operator_kind(e.model) = $model
            OR e.family = 'served' AND contains(lower(e.model), lower($model))
        )
        AND contains(lower(e.source), lower($source))
        AND ($precision = '' OR e.precision = $precision)
        AND (e.calibration = 'none' OR list_contains($calibrations, split_part(e.hardware, '@', 1) || ' ' || e.calibration))
    QUALIFY row_number() OVER (
        PARTITION BY e.measurement_id, e.serving_measurement_id, e.quantity
        ORDER BY e.calibration = 'none', e.run_id DESC, e.estimate_id DESC
    ) = 1
),
ranked AS (
    SELECT
        scored.*,
        rank() OVER (PARTITION BY quantity, hardware, part ORDER BY measured) AS measured_rank,
        rank() OVER (PARTITION BY quantity, hardware, part ORDER BY predicted) AS predicted_rank
    FROM scored
)
SELECT
    quantity, hardware, part,
    count(*) AS measurement_count,
    avg(abs(error_fraction)) AS mean_error_fraction,
    median(abs(error_fraction)) AS median_error_fraction,
    avg(error_fraction) AS bias_fraction,
    arg_max(error_fraction, abs(error_fraction)) AS worst_error_fraction,
    max(error_fraction) AS highest_error_fraction,
    arg_max(label, abs(error_fraction)) AS worst_case,
    CASE WHEN count(DISTINCT predicted_rank) >= 3 THEN corr(measured_rank, predicted_rank) END AS rank_correlation,
    avg(CAST(is_covered AS INTEGER)) AS covered_fraction,
    count(is_covered) AS ranged_count,
    CAST(count(*) FILTER (WHERE seen <> '') AS DOUBLE) / count(*) AS seen_fraction,
    coalesce(
        array_to_string(
            list_sort(list_distinct(flatten(list(string_split(seen, '; ')) FILTER (WHERE seen <> '')))), '; '
        ),
        ''
    ) AS seen,
    string_agg(DISTINCT calibration, '; ' ORDER BY calibration) AS calibration
FROM ranked
GROUP BY quantity, hardware, part
ORDER BY quantity_index(quantity), hardware, CASE WHEN $by = 'source' THEN -measurement_count END, part
