/*
record = "PairChance"
summary = "Each of these runs against each other of its model: how probable it is that it is better"
grain = "one row per metric and ordered pair of evaluated runs"
order = ["metric", "probability_better, highest first", "label", "other_label", "run_id", "other_run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare; refused ones are left out" }
metric = { type = "VARCHAR", default = "", meaning = "energy_per_inference, latency, edp_per_inference, throughput or power; empty for all" }
[columns]
metric = {}
label = { type = "VARCHAR", meaning = "hardware, precision, batch and runtime" }
other_label = { type = "VARCHAR", meaning = "of the other run" }
value = { type = "DOUBLE", meaning = "in the metric's unit" }
other_value = { type = "DOUBLE", meaning = "of the other run" }
better_ratio = { type = "DOUBLE", meaning = "how many times better than the other it is predicted to be; below 1 where it is worse" }
half_width = { type = "DOUBLE", meaning = "of the 80 % interval of that ratio's natural logarithm" }
probability_better = { type = "DOUBLE", meaning = "that it is better, by what the errors of the two have in common" }
is_told_apart = { type = "BOOLEAN", meaning = "one of the two is better with a probability of 0.8 or more" }
run_id = {}
other_run_id = { type = "INTEGER", meaning = "number of the other" }
*/
SELECT
    {columns},
    greatest(probability_better, 1e0 - probability_better) >= told_apart() AS is_told_apart
FROM comparisons_among($run_ids)
WHERE $metric = '' OR metric = $metric
ORDER BY metric, probability_better DESC, label, other_label, run_id, other_run_id
