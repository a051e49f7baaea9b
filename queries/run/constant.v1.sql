/*
name = "run.constant"
version = 1
schema = 3
summary = "Constants of the hardware in which two runs differ: numbers, coefficients and energies per action"
grain = "one row per constant that differs or that only one side has"
order = ["moved_j by size descending, nulls last", "constant"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
[columns]
constant = { type = "VARCHAR", meaning = "quantity of hardware_facts, or energy.COMPONENT.ACTION of the energy reference table" }
value_a = { type = "DOUBLE", meaning = "on A, in unit; null where A has none" }
value_b = { type = "DOUBLE", meaning = "on B, in unit; null where B has none" }
unit = { type = "VARCHAR", meaning = "SI unit" }
ratio = { type = "DOUBLE", meaning = "B over A" }
moved_j = { type = "DOUBLE", unit = "J", meaning = "of an energy per action: B's count times the difference of the prices; null for other constants, whose effect is in the counts" }
basis_a = { type = "VARCHAR", meaning = "where it comes from on A" }
basis_b = { type = "VARCHAR", meaning = "where it comes from on B" }
source_a = { type = "VARCHAR", meaning = "document, measurement or arithmetic on A" }
source_b = { type = "VARCHAR", meaning = "document, measurement or arithmetic on B" }
*/
WITH constant AS (
    SELECT r.run_id, f.quantity AS name, f.value, f.unit, f.basis, f.source
    FROM run AS r
    JOIN hardware_fact AS f ON f.hardware_digest = r.hardware_digest
    WHERE r.run_id IN ($run_a, $run_b)
    UNION ALL
    SELECT
        r.run_id,
        'energy.' || a.component || '.' || a.action,
        e.energy_per_action_fj / 1e15,
        'J/' || a.per,
        e.basis,
        e.source
    FROM run AS r
    JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest
    JOIN action AS a ON a.action_id = e.action_id
    WHERE r.run_id IN ($run_a, $run_b)
),
counted AS (
    SELECT 'energy.' || a.component || '.' || a.action AS name, sum(l.action_count) AS action_count
    FROM ledger_line AS l
    JOIN action AS a ON a.action_id = l.action_id
    WHERE l.run_id = $run_b
    GROUP BY a.component, a.action
),
pair AS (
    SELECT
        coalesce(a.name, b.name) AS name,
        a.value AS value_a,
        b.value AS value_b,
        coalesce(a.unit, b.unit) AS unit,
        a.basis AS basis_a,
        b.basis AS basis_b,
        a.source AS source_a,
        b.source AS source_b
    FROM (SELECT name, value, unit, basis, source FROM constant WHERE run_id = $run_a) AS a
    FULL JOIN (SELECT name, value, unit, basis, source FROM constant WHERE run_id = $run_b) AS b ON b.name = a.name
)
SELECT
    p.name AS constant,
    p.value_a,
    p.value_b,
    p.unit,
    p.value_b / nullif(p.value_a, 0e0) AS ratio,
    c.action_count * (p.value_b - p.value_a) AS moved_j,
    p.basis_a,
    p.basis_b,
    p.source_a,
    p.source_b
FROM pair AS p
LEFT JOIN counted AS c ON c.name = p.name
WHERE p.value_a IS DISTINCT FROM p.value_b
    OR p.basis_a IS DISTINCT FROM p.basis_b
    OR p.source_a IS DISTINCT FROM p.source_b
ORDER BY abs(moved_j) DESC NULLS LAST, constant
