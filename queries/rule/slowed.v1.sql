/*
summary = "Runs that their power cap slows down"
grain = "one row per such run"
order = ["run_id"]
[columns]
clock_fraction = { type = "DOUBLE", meaning = "share of the full clock" }
clock_hz = { type = "DOUBLE", unit = "Hz", meaning = "clock in steady state" }
uncapped_power_w = { type = "DOUBLE", unit = "W", meaning = "power at the full clock" }
*/
SELECT run_id, clock_fraction, clock_hz, uncapped_power_w
FROM internal.run
WHERE list_contains($run_ids, run_id) AND clock_fraction < 0.9995e0
ORDER BY run_id
