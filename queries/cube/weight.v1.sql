/*
summary = "Weights of energy and of time in the difference of two runs by a metric, and of their parts"
grain = "one row"
[parameters]
run_a = { type = "INTEGER", meaning = "first run, A" }
run_b = { type = "INTEGER", meaning = "second run, B" }
metric = { type = "VARCHAR", default = "edp", meaning = "edp weighs them; by any other metric, each is 1" }
[columns]
energy_weight = { type = "HUGEINT", meaning = "time of both runs in fs, which weighs a difference of energy" }
time_weight = { type = "HUGEINT", meaning = "energy of both runs in fJ, which weighs a difference of time; the sum is twice the difference of E T" }
*/
SELECT
    CASE $metric WHEN 'edp' THEN CAST(sum(latency_fs) AS HUGEINT) ELSE 1 END AS energy_weight,
    CASE $metric WHEN 'edp' THEN CAST(sum(energy_fj) AS HUGEINT) ELSE 1 END AS time_weight
FROM internal.run_total
WHERE run_id IN ($run_a, $run_b)
ORDER BY energy_weight
