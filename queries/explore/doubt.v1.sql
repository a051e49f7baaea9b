/*
record = "DesignDoubt"
summary = "Uncertainty of the ratio between two designs, each based on the chip of a run"
grain = "one row per ordered pair of evaluated runs, each also with itself"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of the chips that designs are based on; refused ones are omitted" }
[columns]
run_id = { type = "BIGINT", meaning = "number of the run" }
other_run_id = { type = "BIGINT", meaning = "run of the chip that the other design is based on" }
latency_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of the run's latency" }
energy_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of the run's energy" }
latency_square = { type = "DOUBLE", meaning = "square of the half-width of the logarithm of the ratio of the two latencies" }
energy_square = { type = "DOUBLE", meaning = "square of the half-width of the logarithm of the ratio of the two energies" }
*/
WITH known AS MATERIALIZED (
    SELECT t.run_id, t.latency_half_width, t.energy_half_width
    FROM internal.run_total AS t
    WHERE list_contains($run_ids, t.run_id) AND t.latency_half_width IS NOT NULL AND t.energy_half_width IS NOT NULL
),
pair AS (
    SELECT k.run_id, o.run_id AS other_run_id, 'latency' AS metric, TRUE AS is_other_design
    FROM known AS k
    CROSS JOIN known AS o
),
difference AS (FROM numpy.differences_of(pair))
SELECT
    d.run_id, d.other_run_id,
    k.latency_half_width,
    k.energy_half_width,
    d.latency_square, d.energy_square
FROM difference AS d
JOIN known AS k ON k.run_id = d.run_id
ORDER BY d.run_id, d.other_run_id
