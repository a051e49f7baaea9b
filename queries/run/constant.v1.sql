/*
record = "Constant"
summary = "Constants of the hardware in which two runs differ, and the exact part of the energy difference due to each"
grain = "one row per constant that differs or that only one side has"
order = ["moved_j by size descending, nulls last", "constant"]
[columns]
constant = { type = "VARCHAR", meaning = "quantity of hardware_facts, energy.COMPONENT.ACTION of the energy reference table, or the run's voltage_factor" }
value_a = { heading = "A", type = "DOUBLE", null = true, meaning = "value on A, in unit; null where A lacks the constant" }
value_b = { heading = "B", type = "DOUBLE", null = true, meaning = "value on B, in unit; null where B lacks the constant" }
unit = { type = "VARCHAR", meaning = "SI unit" }
ratio = { type = "DOUBLE", null = true, meaning = "value on B over value on A" }
moved_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "exact part of the energy difference due to this constant: for an energy per action that both have, the part from that energy; for the voltage factor, the terms of all energies that do not differ in the table; together the effects price and static power of explain.effect; null for other constants, whose effect is in counts and time" }
moved_j = { heading = "energy moved", type = "DOUBLE", null = true, unit = "J", meaning = "moved_fj in joules" }
basis_a = { type = "VARCHAR", null = true, meaning = "basis on A" }
basis_b = { heading = "basis B", type = "VARCHAR", null = true, meaning = "basis on B" }
source_a = { type = "VARCHAR", null = true, meaning = "document, measurement or arithmetic on A" }
source_b = { heading = "source B", type = "VARCHAR", null = true, meaning = "document, measurement or arithmetic on B" }
*/
WITH moved AS (
    SELECT
        'energy.' || component || '.' || action AS name,
        sum(difference_fj - by_count_fj) AS moved_fj
    FROM explain.action(run_a := $run_a, run_b := $run_b)
    WHERE price_a IS NOT NULL AND price_b IS NOT NULL
    GROUP BY component, action
),
constant AS (
    SELECT r.run_id, f.quantity AS name, f.value, f.unit, f.basis, f.source
    FROM internal.run AS r
    JOIN internal.hardware_fact AS f ON f.hardware_digest = r.hardware_digest
    WHERE r.run_id IN ($run_a, $run_b)
    UNION ALL
    SELECT
        r.run_id,
        'energy.' || a.component || '.' || a.action,
        e.energy_per_action_fj / 1e15,
        'J/' || a.per,
        e.basis,
        e.source
    FROM internal.run AS r
    JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest
    JOIN internal.action AS a ON a.action_id = e.action_id
    WHERE r.run_id IN ($run_a, $run_b)
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
),
compared AS (
    SELECT
        p.name,
        p.value_a,
        p.value_b,
        p.unit,
        p.basis_a,
        p.basis_b,
        p.source_a,
        p.source_b,
        m.moved_fj,
        p.value_a IS DISTINCT FROM p.value_b
        OR p.basis_a IS DISTINCT FROM p.basis_b
        OR p.source_a IS DISTINCT FROM p.source_b AS differs
    FROM pair AS p
    LEFT JOIN moved AS m ON m.name = p.name
),
row_of AS (
    SELECT name, value_a, value_b, unit, basis_a, basis_b, source_a, source_b, moved_fj
    FROM compared
    WHERE differs
    UNION ALL
    SELECT
        'voltage_factor',
        a.voltage_factor,
        b.voltage_factor,
        '1',
        'derived',
        'derived',
        'voltage at the clock of the run',
        'voltage at the clock of the run',
        (SELECT sum(moved_fj) FROM compared WHERE NOT differs)
    FROM internal.run AS a, internal.run AS b
    WHERE a.run_id = $run_a AND b.run_id = $run_b AND a.voltage_factor IS DISTINCT FROM b.voltage_factor
)
SELECT
    name AS constant,
    value_a, value_b, unit,
    value_b / nullif(value_a, 0e0) AS ratio,
    moved_fj,
    joules(moved_fj) AS moved_j,
    basis_a, basis_b, source_a, source_b
FROM row_of
ORDER BY abs(moved_j) DESC NULLS LAST, constant
