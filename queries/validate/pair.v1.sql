/*
record = "PairScore"
summary = "Pairs of hardware that served the same model under equal conditions: how often the better one is predicted to be better"
grain = "one row per source and quantity, and one per quantity for all sources together"
order = ["quantity, times and rates before energies and powers", "source"]
[parameters]
model = { type = "VARCHAR", default = "", meaning = "text that model names must contain, ignoring case; empty for all" }
[columns]
quantity = { type = "VARCHAR", meaning = "quantity as in serving_predictions" }
source = { type = "VARCHAR", meaning = "name of the source of both measurements; `all` for all sources together" }
pair_count = { type = "BIGINT", meaning = "pairs: same source, model, precision of weights, scope, input tokens and sequences, output tokens within a tenth, other hardware" }
right_fraction = { type = "DOUBLE", meaning = "share of pairs in which the hardware with the lower measured value also has the lower predicted value" }
apart_count = { type = "BIGINT", meaning = "number of pairs that are not statistically tied: one is better with a probability of at least 80 %" }
apart_right_fraction = { type = "DOUBLE", null = true, meaning = "share of the pairs in apart_count that are predicted in the measured order; null if apart_count is 0" }
mean_probability = { type = "DOUBLE", null = true, meaning = "mean probability of the predicted order in the pairs that are not statistically tied" }
*/
WITH compared AS (
    SELECT
        p.quantity,
        p.measured,
        p.predicted,
        p.half_width,
        p.serving_measurement_id,
        m.hardware,
        regexp_replace(m.source, '(, |: ).*$', '') AS source,
        m.output_tokens,
        concat_ws('|', m.source, m.model, m.weight_precision, m.scope, m.prompt_tokens) AS same,
        round(m.batch) AS batch
    FROM serving_predictions AS p
    JOIN internal.serving_measurement AS m ON m.serving_measurement_id = p.serving_measurement_id
    WHERE p.predicted > 0e0
        AND contains(lower(m.source), lower($source))
        AND contains(lower(m.model), lower($model))
),
pair AS (
    SELECT
        a.quantity,
        a.source,
        (a.measured < b.measured) = (a.predicted < b.predicted) AS is_right,
        abs(ln(a.predicted / b.predicted)) AS ahead,
        sqrt(pow(a.half_width, 2) + pow(b.half_width, 2)) AS half_width,
        row_number() OVER (ORDER BY a.quantity, a.serving_measurement_id, b.serving_measurement_id) AS row_id
    FROM compared AS a
    JOIN compared AS b
        ON b.quantity = a.quantity
        AND b.same = a.same
        AND b.batch = a.batch
        AND coalesce(abs(ln(a.output_tokens / b.output_tokens)), 0e0) <= 1e-1
        AND b.hardware > a.hardware
    WHERE a.measured <> b.measured AND a.half_width IS NOT NULL AND b.half_width IS NOT NULL
),
chance AS (FROM numpy.probabilities_of(pair))
SELECT
    p.quantity,
    coalesce(p.source, 'all') AS source,
    count(*) AS pair_count,
    avg(CAST(p.is_right AS INTEGER)) AS right_fraction,
    count(*) FILTER (c.is_told_apart) AS apart_count,
    avg(CAST(p.is_right AS INTEGER)) FILTER (c.is_told_apart) AS apart_right_fraction,
    avg(c.probability) FILTER (c.is_told_apart) AS mean_probability
FROM pair AS p
JOIN chance AS c ON c.row_id = p.row_id
GROUP BY GROUPING SETS ((p.quantity, p.source), (p.quantity))
ORDER BY quantity_index(quantity), source
