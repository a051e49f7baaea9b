/*
summary = "Runs whose host computes operators that the chip does not support"
grain = "one row per such run"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
latency_fraction = { type = "DOUBLE", meaning = "share of the latency on the host" }
operations = { type = "VARCHAR[]", meaning = "operations that the host computes" }
helper = { type = "VARCHAR", meaning = "the host" }
doubt = { type = "DOUBLE", meaning = "natural logarithm of the factor by which the run would be faster without these operators" }
*/
SELECT
    run_id,
    round(sum(latency_fraction), 3) AS latency_fraction,
    list(operation ORDER BY first_operator_index) AS operations,
    any_value(helper) AS helper,
    -ln(
        greatest(
            1e0 - sum(CASE $metric WHEN 'energy' THEN energy_fraction WHEN 'latency' THEN latency_fraction ELSE 0e0 END),
            1e-3
        )
    ) AS doubt
FROM run.fallback(run_ids := $run_ids)
GROUP BY run_id
ORDER BY run_id
