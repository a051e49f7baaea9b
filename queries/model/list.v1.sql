/*
summary = "Models that are known by name"
grain = "one row per model"
order = ["operators last, blocks before them", "task", "number of measurements, most first", "number of aliases, most first", "family", "name"]
[columns]
name = { type = "VARCHAR", meaning = "name as a model of `compare`" }
family = { type = "VARCHAR", meaning = "family of architectures" }
task = { type = "VARCHAR", meaning = "task: classification, segmentation, text, speech, diffusion, block ..." }
input_shape = { type = "VARCHAR", meaning = "input shape of one sample; empty where the model defines its own inputs" }
parameter_count = { type = "BIGINT", meaning = "elements of all parameters, as traced" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates at batch 1, as traced" }
aliases = { type = "VARCHAR", meaning = "other names, and names of models with equal sizes; separated by spaces" }
*/
WITH measured AS (
    SELECT model, count(*) AS measurement_count
    FROM measurements
    GROUP BY model
)
SELECT
    e.model AS name,
    e.family, e.task, e.input_shape,
    coalesce(e.traced_parameter_count, e.parameter_count) AS parameter_count,
    coalesce(e.mac_count, e.published_mac_count) AS mac_count,
    e.aliases
FROM internal.model_entry AS e
LEFT JOIN measured AS m USING (model)
ORDER BY
    e.task = 'operator', e.task = 'block', e.task, coalesce(m.measurement_count, 0) DESC,
    len(string_split(e.aliases, ' ')) DESC, e.family, e.model
