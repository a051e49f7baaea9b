/*
name = "explain.total"
version = 1
schema = 3
summary = "The two runs of an explanation and their difference"
grain = "one row"
order = ["the only row"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
[columns]
model = { type = "VARCHAR", meaning = "model of A" }
hardware_a = { type = "VARCHAR", meaning = "hardware of A" }
hardware_b = { type = "VARCHAR", meaning = "hardware of B" }
energy_a_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of A, exact" }
energy_b_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of B, exact" }
difference_fj = { type = "HUGEINT", unit = "fJ", meaning = "B minus A, exact" }
energy_a_j = { type = "DOUBLE", unit = "J", meaning = "energy of A" }
energy_b_j = { type = "DOUBLE", unit = "J", meaning = "energy of B" }
difference_j = { type = "DOUBLE", unit = "J", meaning = "B minus A" }
ratio = { type = "DOUBLE", meaning = "energy of B over that of A" }
*/
WITH total AS (
    SELECT
        sum(energy_fj) FILTER (WHERE run_id = $run_a) AS energy_a_fj,
        sum(energy_fj) FILTER (WHERE run_id = $run_b) AS energy_b_fj
    FROM ledger_line
    WHERE run_id IN ($run_a, $run_b)
)
SELECT
    w.model,
    configuration_name(v.hardware, a.power_mode) AS hardware_a,
    configuration_name(u.hardware, b.power_mode) AS hardware_b,
    t.energy_a_fj,
    t.energy_b_fj,
    t.energy_b_fj - t.energy_a_fj AS difference_fj,
    CAST(t.energy_a_fj AS DOUBLE) / 1e15 AS energy_a_j,
    CAST(t.energy_b_fj AS DOUBLE) / 1e15 AS energy_b_j,
    CAST(t.energy_b_fj - t.energy_a_fj AS DOUBLE) / 1e15 AS difference_j,
    CAST(t.energy_b_fj AS DOUBLE) / CAST(t.energy_a_fj AS DOUBLE) AS ratio
FROM total AS t
JOIN run AS a ON a.run_id = $run_a
JOIN run AS b ON b.run_id = $run_b
JOIN workload AS w ON w.workload_id = a.workload_id
JOIN hardware_version AS v ON v.hardware_digest = a.hardware_digest
JOIN hardware_version AS u ON u.hardware_digest = b.hardware_digest
ORDER BY a.run_id
