/*
record = "SweepCrossing"
summary = "Batches from which one chip beats another that was better at smaller batches"
grain = "one row per model, precision, runtime, metric, pair of hardware and batch at which the better one changes"
order = ["model", "precision", "runtime", "metric", "batch", "overtaker", "overtaken"]
[columns]
metric = { shown = "metric", type = "VARCHAR", values = "MetricName", meaning = "metric: edp, energy x latency of a batch; energy_per_inference; latency of a batch" }
overtaker = { type = "VARCHAR", meaning = "hardware with the smaller value at batch" }
overtaken = { type = "VARCHAR", meaning = "hardware with the smaller value at previous_batch" }
batch = { heading = "from batch", type = "INTEGER", meaning = "smallest batch of the sweep with the reversed order" }
overtaker_value = { heading = "values", type = "DOUBLE", meaning = "value of the overtaker at batch, in unit" }
overtaken_value = { type = "DOUBLE", meaning = "value of the overtaken hardware at batch, in unit" }
unit = { type = "VARCHAR", meaning = "J, s or Js" }
previous_batch = { type = "INTEGER", meaning = "largest smaller batch at which the two were not equal" }
previous_overtaker_value = { heading = "values before", type = "DOUBLE", meaning = "value of the overtaker at previous_batch, in unit" }
previous_overtaken_value = { type = "DOUBLE", meaning = "value of the overtaken hardware at previous_batch, in unit" }
is_projection = { type = "BOOLEAN", meaning = "true if key numbers of one of the two are projections or estimates" }
*/
WITH candidate AS (
    SELECT
        model, "precision", runtime, series, batch, hardware, is_projection,
        unnest([
            {'metric': 'edp', 'unit': find_metric('edp').unit, 'value': edp_js},
            {'metric': 'energy_per_inference', 'unit': find_metric('energy_per_inference').unit, 'value': energy_per_inference_j},
            {'metric': 'latency', 'unit': find_metric('latency').unit, 'value': latency_s}
        ], recursive := TRUE)
    FROM cube.run(run_ids := $run_ids, rows := 'evaluated')
),
pair AS (
    SELECT
        a.model,
        a.precision,
        a.runtime,
        a.series,
        a.metric,
        a.unit,
        a.batch,
        a.hardware AS first_hardware,
        b.hardware AS second_hardware,
        a.value AS first_value,
        b.value AS second_value,
        a.is_projection OR b.is_projection AS is_projection
    FROM candidate AS a
    JOIN candidate AS b
        ON b.series = a.series
        AND b.batch = a.batch
        AND b.metric = a.metric
        AND b.hardware > a.hardware
    WHERE a.value <> b.value
),
followed AS (
    SELECT
        model,
        precision,
        runtime,
        series,
        metric,
        unit,
        batch,
        first_hardware,
        second_hardware,
        first_value,
        second_value,
        is_projection,
        lag(batch) OVER by_batch AS previous_batch,
        lag(first_value) OVER by_batch AS previous_first_value,
        lag(second_value) OVER by_batch AS previous_second_value
    FROM pair
    WINDOW by_batch AS (
        PARTITION BY series, metric, first_hardware, second_hardware ORDER BY batch
    )
)
SELECT
    model, "precision", runtime, metric,
    CASE WHEN first_value < second_value THEN first_hardware ELSE second_hardware END AS overtaker,
    CASE WHEN first_value < second_value THEN second_hardware ELSE first_hardware END AS overtaken,
    batch,
    least(first_value, second_value) AS overtaker_value,
    greatest(first_value, second_value) AS overtaken_value,
    unit, previous_batch,
    greatest(previous_first_value, previous_second_value) AS previous_overtaker_value,
    least(previous_first_value, previous_second_value) AS previous_overtaken_value,
    is_projection
FROM followed
WHERE (first_value < second_value) <> (previous_first_value < previous_second_value)
ORDER BY model, precision, runtime, series, metric, batch, overtaker, overtaken
