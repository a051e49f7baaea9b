/*
name = "calibration.run"
version = 1
schema = 1
summary = "Which calibrations these runs used, what they were fitted to, and how far they are from that"
grain = "one row per calibration"
order = ["hardware", "calibration"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs" }
[columns]
calibration = { type = "VARCHAR", meaning = "name and first digits of the digest" }
hardware = { type = "VARCHAR", meaning = "id of the hardware that it is for" }
place = { type = "VARCHAR", meaning = "shipped, the file, or given by a program" }
measurement_count = { type = "INTEGER", meaning = "measurements that it was fitted to" }
family_count = { type = "INTEGER", meaning = "families of the models measured" }
precisions = { type = "VARCHAR[]", meaning = "of the measurements" }
runtimes = { type = "VARCHAR[]", meaning = "of the measurements" }
latency_error_fraction = { type = "DOUBLE", meaning = "median absolute relative error of latencies: of families left out, or as fitted where there is one alone" }
energy_error_fraction = { type = "DOUBLE", meaning = "the same of energies; null where none was measured" }
*/
SELECT
    c.calibration,
    c.hardware,
    c.place,
    c.measurement_count,
    CAST(len(c.families) AS INTEGER) AS family_count,
    c.precisions,
    c.runtimes,
    c.latency_error_fraction,
    c.energy_error_fraction
FROM calibrations AS c
WHERE c.calibration_digest IN (SELECT r.calibration_digest FROM run AS r WHERE list_contains($run_ids, r.run_id))
ORDER BY c.hardware, c.calibration
