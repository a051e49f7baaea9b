/*
record = "ServedMeasurement"
summary = "What somebody measured of language models as they are served"
grain = "one row per measurement"
[parameters]
model = { type = "VARCHAR", default = "", meaning = "only models whose name holds this text, whatever the case; empty for all" }
source = { type = "VARCHAR", default = "", meaning = "only measurements whose source holds this text, whatever the case; empty for all" }
[columns]
source = { type = "VARCHAR", meaning = "where it comes from" }
hardware = { type = "VARCHAR", meaning = "catalogue id, or the name of hardware that the catalogue does not have" }
model = { type = "VARCHAR", meaning = "as its source names it" }
engine = { type = "VARCHAR", meaning = "what serves; empty where not told" }
engine_version = { type = "VARCHAR", meaning = "as told" }
date = { type = "VARCHAR", meaning = "of the measurement" }
commit = { type = "VARCHAR", meaning = "repository and commit of the source" }
device_count = { type = "INTEGER", null = true, meaning = "devices in use" }
tensor_parallel = { type = "INTEGER", null = true, meaning = "devices that share each layer" }
pipeline_parallel = { type = "INTEGER", null = true, meaning = "groups of layers one after another" }
expert_parallel = { type = "INTEGER", null = true, meaning = "devices that share the experts" }
data_parallel = { type = "INTEGER", null = true, meaning = "copies that share the requests" }
weight_precision = { type = "VARCHAR", meaning = "as told" }
activation_precision = { type = "VARCHAR", meaning = "as told" }
cache_precision = { type = "VARCHAR", meaning = "as told" }
prompt_tokens = { type = "DOUBLE", null = true, meaning = "of a sequence; what lies in its cache before a decode_step" }
output_tokens = { type = "DOUBLE", null = true, meaning = "of a sequence" }
batch = { type = "DOUBLE", meaning = "sequences of a call, or the mean of requests in flight" }
time_to_first_token_s = { type = "DOUBLE", null = true, unit = "s", meaning = "of the whole batch" }
inter_token_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "one step of the whole batch" }
request_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "first prompt token to last output token" }
output_tokens_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "of all devices" }
total_tokens_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "prompt and output, of all devices" }
energy_per_output_token_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of all devices, within power_boundary" }
energy_per_request_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of all devices, within power_boundary" }
power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "of all devices, within power_boundary" }
power_boundary = { type = "VARCHAR", meaning = "what joules and watts contain" }
speculative = { type = "VARCHAR", meaning = "how tokens are guessed ahead" }
cached_tokens = { type = "DOUBLE", null = true, meaning = "of a sequence, in the cache before a pass over its prompt" }
uses_cache = { type = "BOOLEAN", meaning = "whether keys and values are kept from step to step" }
context_tokens = { type = "DOUBLE", null = true, meaning = "of a sequence, that passes were compiled for" }
file_bytes = { type = "DOUBLE", null = true, unit = "B", meaning = "of the weights as they are stored" }
statistic = { type = "VARCHAR", meaning = "of times between tokens: mean or median" }
prompt_kind = { type = "VARCHAR", meaning = "what is told of a prompt whose length is not: short, or empty" }
notes = { type = "VARCHAR", meaning = "what else the numbers depend on" }
*/
SELECT
    serving_measurement_id, source, hardware, model, scope, engine, engine_version, date, commit, device_count,
    tensor_parallel, pipeline_parallel, expert_parallel, data_parallel, weight_precision, activation_precision,
    cache_precision, prompt_tokens, output_tokens, batch, time_to_first_token_s, inter_token_latency_s,
    request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j,
    power_w, power_boundary, speculative, cached_tokens, uses_cache, context_tokens, file_bytes, statistic,
    prompt_kind, notes, seen
FROM serving_measurements
WHERE ($hardware = '' OR hardware = $hardware)
    AND contains(lower(model), lower($model))
    AND contains(lower(source), lower($source))
ORDER BY source, hardware, model, engine, batch, serving_measurement_id
