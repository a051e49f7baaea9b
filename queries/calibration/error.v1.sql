/*
record = "CalibrationErrorRow"
summary = "Errors of a calibration: with class defaults, as fitted, and with each family held out"
grain = "one row per quantity and group of rows"
table = [
    'measurement_count.headed("measurements").kept', 'uncalibrated_mean_fraction.headed("class defaults mean")',
    'uncalibrated_median_fraction.headed("class defaults median")',
    'fitted_mean_fraction.headed("fitted mean").kept', 'fitted_median_fraction.headed("fitted median")',
    'cross_validated_mean_fraction.headed("held-out mean").kept',
    'cross_validated_median_fraction.headed("held-out median")',
    'cross_validated_worst_fraction.headed("held-out worst")', 'rank_correlation.headed("rank correlation")',
]
order = ["quantity, latency first", "families after all, runtimes, precisions and batches", "runtime", "precision", "batch", "family"]
[columns]
quantity = { type = "VARCHAR", meaning = "latency or energy" }
runtime = { type = "VARCHAR", null = true, meaning = "runtime of the rows; null for all" }
precision = { type = "VARCHAR", null = true, meaning = "precision of the rows; null for all" }
batch = { type = "INTEGER", null = true, meaning = "batch of the rows; null for all" }
family = { type = "VARCHAR", null = true, meaning = "family of the rows' models; null for all" }
measurement_count = { type = "INTEGER", meaning = "number of measurements" }
uncalibrated_mean_fraction = { type = "DOUBLE", null = true, meaning = "mean absolute relative error with class defaults" }
uncalibrated_median_fraction = { type = "DOUBLE", null = true, meaning = "median absolute relative error with class defaults" }
fitted_mean_fraction = { type = "DOUBLE", null = true, meaning = "mean absolute relative error as fitted" }
fitted_median_fraction = { type = "DOUBLE", null = true, meaning = "median absolute relative error as fitted" }
cross_validated_mean_fraction = { type = "DOUBLE", null = true, meaning = "mean absolute relative error of fits without the row's family; null for a single family" }
cross_validated_median_fraction = { type = "DOUBLE", null = true, meaning = "median absolute relative error of fits without the row's family" }
cross_validated_worst_fraction = { type = "DOUBLE", null = true, meaning = "largest signed error of fits without the row's family; positive is predicted too high" }
rank_correlation = { type = "DOUBLE", null = true, meaning = "Spearman's rank correlation of fits without the row's family, or as fitted for a single family; null below three rows" }
*/
SELECT
    e.quantity, e.runtime, e.precision, e.batch, e.family,
    max(e.measurement_count) AS measurement_count,
    max(e.mean_error_fraction) FILTER (WHERE e.split = 'uncalibrated') AS uncalibrated_mean_fraction,
    max(e.median_error_fraction) FILTER (WHERE e.split = 'uncalibrated') AS uncalibrated_median_fraction,
    max(e.mean_error_fraction) FILTER (WHERE e.split = 'fitted') AS fitted_mean_fraction,
    max(e.median_error_fraction) FILTER (WHERE e.split = 'fitted') AS fitted_median_fraction,
    max(e.mean_error_fraction) FILTER (WHERE e.split = 'cross_validated') AS cross_validated_mean_fraction,
    max(e.median_error_fraction) FILTER (WHERE e.split = 'cross_validated') AS cross_validated_median_fraction,
    max(e.worst_error_fraction) FILTER (WHERE e.split = 'cross_validated') AS cross_validated_worst_fraction,
    coalesce(
        max(e.rank_correlation) FILTER (WHERE e.split = 'cross_validated'),
        max(e.rank_correlation) FILTER (WHERE e.split = 'fitted')
    ) AS rank_correlation
FROM calibration_errors AS e
WHERE e.calibration = $calibration
GROUP BY e.quantity, e.runtime, e.precision, e.batch, e.family
ORDER BY
    e.quantity = 'energy',
    e.family IS NOT NULL,
    e.runtime IS NOT NULL,
    e.precision IS NOT NULL,
    e.runtime,
    e.precision,
    e.batch NULLS FIRST,
    e.family
