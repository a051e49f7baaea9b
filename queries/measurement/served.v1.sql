/*
record = "ServedMeasurement"
summary = "Measurements of served language models"
grain = "one row per measurement"
[parameters]
model = { type = "VARCHAR", default = "", meaning = "text that model names must contain, ignoring case; empty for all" }
source = { type = "VARCHAR", default = "", meaning = "text that source names must contain, ignoring case; empty for all" }
[columns]
source = { type = "VARCHAR", meaning = "source of the measurement" }
hardware = { type = "VARCHAR", meaning = "catalogue id, or the name of hardware outside the catalogue" }
model = { type = "VARCHAR", meaning = "model as its source names it" }
engine = { type = "VARCHAR", meaning = "engine; empty where not stated" }
engine_version = { type = "VARCHAR", meaning = "engine version as stated; empty where not stated" }
date = { type = "VARCHAR", meaning = "date of the measurement" }
commit = { type = "VARCHAR", meaning = "repository and commit of the source" }
device_count = { type = "INTEGER", null = true, meaning = "devices in use" }
tensor_parallel = { type = "INTEGER", null = true, meaning = "devices that share each layer" }
pipeline_parallel = { type = "INTEGER", null = true, meaning = "pipeline stages" }
expert_parallel = { type = "INTEGER", null = true, meaning = "devices that share the experts" }
data_parallel = { type = "INTEGER", null = true, meaning = "replicas that share the requests" }
other_hardware = { type = "VARCHAR", meaning = "other chips that hold a part of the model, joined by +, a processor last; empty for none" }
layer_split = { type = "VARCHAR", meaning = "layers on the hardware and on each other chip, as 20/12; experts 36/23 if the last has the experts alone, of 23 layers" }
weight_precision = { type = "VARCHAR", meaning = "weight precision as stated; empty where not stated" }
activation_precision = { type = "VARCHAR", meaning = "activation precision as stated; empty where not stated" }
cache_precision = { type = "VARCHAR", meaning = "cache precision as stated; empty where not stated" }
prompt_tokens = { type = "DOUBLE", null = true, meaning = "prompt tokens of a sequence; for a decode_step, tokens in its cache" }
output_tokens = { type = "DOUBLE", null = true, meaning = "output tokens of a sequence" }
batch = { type = "DOUBLE", meaning = "sequences per call, or mean requests in flight" }
time_to_first_token_s = { type = "DOUBLE", null = true, unit = "s", meaning = "time to first token: of the whole batch, or the mean over requests" }
inter_token_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "time of one step of the whole batch" }
request_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "time from first prompt token to last output token" }
output_tokens_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "tokens per second of all devices" }
total_tokens_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "prompt and output tokens of all devices" }
energy_per_output_token_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per output token of all devices, within power_boundary" }
energy_per_request_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per request of all devices, within power_boundary" }
power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "power of all devices, within power_boundary" }
power_boundary = { type = "VARCHAR", meaning = "boundary of energy and power" }
idle_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "idle power of all devices that was subtracted from energies; null for energies that contain it" }
speculative = { type = "VARCHAR", meaning = "speculative decoding method" }
cached_tokens = { type = "DOUBLE", null = true, meaning = "tokens of a sequence that are already in the cache before the pass over its prompt" }
uses_cache = { type = "BOOLEAN", meaning = "true if keys and values are kept from step to step" }
context_tokens = { type = "DOUBLE", null = true, meaning = "context length in tokens that the passes were compiled for" }
file_bytes = { type = "DOUBLE", null = true, unit = "B", meaning = "size of the weights as they are stored" }
client = { type = "VARCHAR", meaning = "how the requests in flight start: steady, together or waves; empty if unknown" }
requests = { type = "DOUBLE", null = true, meaning = "number of requests over which times are means" }
length_spread = { type = "DOUBLE", null = true, meaning = "relative spread of lengths around their means, both ways; 0 for equal lengths" }
statistic = { type = "VARCHAR", meaning = "statistic of times between tokens: mean or median" }
phases = { type = "VARCHAR", meaning = "separate if prefill and decode have devices of their own, or empty" }
prompt_kind = { type = "VARCHAR", meaning = "statement about a prompt of unknown length: short, or empty for none" }
notes = { type = "VARCHAR", meaning = "further conditions" }
seen = { heading = "used to fit" }
*/
SELECT
    serving_measurement_id, source, hardware, model, scope, engine, engine_version, date, commit, device_count,
    tensor_parallel, pipeline_parallel, expert_parallel, data_parallel, other_hardware, layer_split, weight_precision, activation_precision,
    cache_precision, prompt_tokens, output_tokens, batch, time_to_first_token_s, inter_token_latency_s,
    request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j,
    power_w, power_boundary, idle_power_w, speculative, cached_tokens, uses_cache, context_tokens, file_bytes, client, requests,
    length_spread, statistic,
    prompt_kind, phases, notes, seen
FROM serving_measurements
WHERE ($hardware = '' OR hardware = $hardware)
    AND contains(lower(model), lower($model))
    AND contains(lower(source), lower($source))
ORDER BY source, hardware, model, engine, batch, serving_measurement_id
