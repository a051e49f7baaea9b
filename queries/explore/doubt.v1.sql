/*
record = "DesignDoubt"
summary = "How far apart two designs must be to be told apart: one like the chip of a run, the other like that of another, or another one of the same"
grain = "one row per ordered pair of evaluated runs, each with itself too"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of the chips that designs are like; refused ones are left out" }
[columns]
run_id = {}
other_run_id = { type = "INTEGER", meaning = "of the run whose chip the other design is like" }
latency_half_width = { type = "DOUBLE", meaning = "of the 80 % interval of the logarithm of the run's latency" }
energy_half_width = { type = "DOUBLE", meaning = "of the same of its energy" }
latency_square = { type = "DOUBLE", meaning = "of the half-width of what the logarithms of the two designs' latencies differ by" }
energy_square = { type = "DOUBLE", meaning = "of the same of their energies" }
joint_square = { type = "DOUBLE", meaning = "what the two differences have in common" }
*/
WITH known AS MATERIALIZED (
    SELECT t.run_id, t.latency_half_width, t.energy_half_width
    FROM internal.run_total AS t
    WHERE list_contains($run_ids, t.run_id) AND t.latency_half_width IS NOT NULL AND t.energy_half_width IS NOT NULL
),
alike AS MATERIALIZED (
    SELECT
        erring(
            (SELECT list(k.run_id ORDER BY k.run_id) FROM known AS k),
            CAST([] AS STRUCT(run_id INTEGER, latency_half_width DOUBLE, energy_half_width DOUBLE)[])
        ) AS runs
),
paired AS MATERIALIZED (
    SELECT
        list_concat(
            a.runs,
            list_transform(a.runs, lambda one: struct_update(one, run_id := -one.run_id, own := 'another design'))
        ) AS runs
    FROM alike AS a
)
SELECT
    d.{columns},
    -d.other_run_id AS other_run_id,
    k.latency_half_width,
    k.energy_half_width
FROM differences_between(
    (SELECT b.runs FROM paired AS b),
    (
        SELECT list({'run_id': k.run_id, 'other_run_id': -o.run_id})
        FROM known AS k
        CROSS JOIN known AS o
    )
) AS d
JOIN known AS k ON k.run_id = d.run_id
ORDER BY d.run_id, other_run_id
