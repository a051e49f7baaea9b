/*
record = "OperatorScore"
summary = "Predicted against measured device time of operators inside models, by kind of operator"
grain = "one row per chip and operator kind, and one for all kinds"
order = ["hardware", "kind, all first, then by device_time_s descending"]
[parameters]
above_s = { type = "DOUBLE", default = 5e-6, meaning = "minimum operator time for a score of its own" }
[columns]
kind = { type = "VARCHAR", meaning = "kind of operator, or all: every kind except those whose kernels overlap" }
is_overlapping = { type = "BOOLEAN", meaning = "true if kernels of this kind overlap in a graph, so that the profile overstates their time; not counted in all" }
group_count = { heading = "groups", type = "BIGINT", meaning = "groups of operators with the same operation and shapes in one model, precision and batch" }
device_time_s = { type = "DOUBLE", unit = "s", meaning = "measured time" }
device_time_fraction = { heading = "share of time", type = "DOUBLE", null = true, meaning = "share of the device time of all selected profiles, unmatched kernels included" }
time_bias_fraction = { heading = "bias of time", type = "DOUBLE", meaning = "total predicted over total measured time, minus 1" }
time_weighted_error_fraction = { heading = "error weighted by time", type = "DOUBLE", meaning = "mean absolute relative error of all groups, weighted by measured time" }
scored_count = { heading = "scored groups", type = "BIGINT", meaning = "number of groups whose operators take longer than above_s each" }
mean_error_fraction = { heading = "mean error", type = "DOUBLE", null = true, meaning = "mean absolute relative error of the groups in scored_count" }
median_error_fraction = { heading = "median error", type = "DOUBLE", null = true, meaning = "median absolute relative error of the groups in scored_count" }
bias_fraction = { heading = "bias", type = "DOUBLE", null = true, meaning = "mean signed relative error of the groups in scored_count; positive is predicted too high" }
worst_error_fraction = { heading = "worst error", type = "DOUBLE", null = true, meaning = "signed relative error of the worst group in scored_count" }
worst_case = { type = "VARCHAR", null = true, meaning = "worst group: model, precision, batch, operation, shapes" }
seen_fraction = { heading = "used for fitting", type = "DOUBLE", meaning = "share of the groups that were used for fitting coefficients" }
operator_count = { type = "BIGINT", meaning = "operators in these groups" }
*/
WITH pair AS (
    SELECT
        hardware,
        unnest(CASE WHEN is_overlapping THEN [kind] ELSE ['all', kind] END) AS kind,
        is_overlapping,
        operator_count,
        measured_s,
        predicted_s,
        error_fraction,
        measured_per_operator_s > $above_s AS is_scored,
        concat_ws(' ', model, precision, 'batch ' || batch, operation, shapes) AS label,
        seen
    FROM operator_prediction_errors
    WHERE ($hardware = '' OR hardware = $hardware)
        AND ($model = '' OR model = $model)
        AND ($precision = '' OR precision = $precision)
),
whole AS (
    SELECT hardware, sum(device_time_s ORDER BY device_time_s) AS device_time_s
    FROM operator_measurements
    WHERE ($hardware = '' OR hardware = $hardware)
        AND ($model = '' OR model = $model)
        AND ($precision = '' OR precision = $precision)
    GROUP BY hardware
)
SELECT
    p.hardware,
    p.kind,
    p.is_overlapping,
    count(*) AS group_count,
    CAST(sum(p.operator_count) AS BIGINT) AS operator_count,
    sum(p.measured_s ORDER BY p.measured_s) AS device_time_s,
    sum(p.measured_s ORDER BY p.measured_s) / any_value(w.device_time_s) AS device_time_fraction,
    sum(p.predicted_s ORDER BY p.predicted_s) / sum(p.measured_s ORDER BY p.measured_s) - 1e0 AS time_bias_fraction,
    sum(abs(p.predicted_s - p.measured_s) ORDER BY p.measured_s, p.predicted_s)
        / sum(p.measured_s ORDER BY p.measured_s) AS time_weighted_error_fraction,
    count(*) FILTER (WHERE p.is_scored) AS scored_count,
    avg(abs(p.error_fraction)) FILTER (WHERE p.is_scored) AS mean_error_fraction,
    median(abs(p.error_fraction)) FILTER (WHERE p.is_scored) AS median_error_fraction,
    avg(p.error_fraction) FILTER (WHERE p.is_scored) AS bias_fraction,
    arg_max(p.error_fraction, (abs(p.error_fraction), p.label)) FILTER (WHERE p.is_scored) AS worst_error_fraction,
    arg_max(p.label, (abs(p.error_fraction), p.label)) FILTER (WHERE p.is_scored) AS worst_case,
    CAST(count(*) FILTER (WHERE p.seen <> '') AS DOUBLE) / count(*) AS seen_fraction
FROM pair AS p
JOIN whole AS w ON w.hardware = p.hardware
GROUP BY p.hardware, p.kind, p.is_overlapping
ORDER BY p.hardware, p.kind <> 'all', device_time_s DESC, p.kind, p.is_overlapping
