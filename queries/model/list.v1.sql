/*
summary = "Models that are known by name"
grain = "one row per model"
order = ["operators last, blocks before them", "task", "family", "name"]
[columns]
name = { type = "VARCHAR", meaning = "name as a model of `compare`" }
family = { type = "VARCHAR", meaning = "family of architectures" }
task = { type = "VARCHAR", meaning = "task: classification, segmentation, text, speech, diffusion, block ..." }
input_shape = { type = "VARCHAR", meaning = "input shape of one sample; empty where the model defines its own inputs" }
parameter_count = { type = "BIGINT", meaning = "elements of all parameters, as traced" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates at batch 1, as traced" }
aliases = { type = "VARCHAR", meaning = "other names, and names of models with equal sizes; separated by spaces" }
*/
SELECT
    model AS name,
    family, task, input_shape,
    coalesce(traced_parameter_count, parameter_count) AS parameter_count,
    coalesce(mac_count, published_mac_count) AS mac_count,
    aliases
FROM internal.model_entry
ORDER BY task = 'operator', task = 'block', task, family, model
