/*
record = "NumberSource"
summary = "Sources of the numbers of runs: energies per action and other numbers of their hardware, with the energy that rests on each source"
grain = "one row per run, basis and source; refused runs are omitted"
order = ["run as in run_ids", "run_fraction descending", "basis", "source"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`" }
[columns]
basis = { type = "VARCHAR", meaning = "measured, published, derived, scaled, recalled or assumed" }
number_count = { type = "BIGINT", meaning = "number of the hardware's numbers from this source" }
numbers = { type = "VARCHAR", meaning = "names of the numbers in alphabetical order, comma-separated: quantities, and COMPONENT.ACTION for an energy per action" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact energy of the run that rests on energies per action from this source" }
run_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's energy" }
*/
WITH priced AS (
    SELECT
        l.run_id,
        e.basis,
        e.source,
        a.component || '.' || a.action AS name,
        sum(l.energy_fj) AS energy_fj
    FROM internal.run_action AS l
    JOIN internal.run AS r ON r.run_id = l.run_id
    JOIN internal.action AS a ON a.action_id = l.action_id
    JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
    GROUP BY ALL
),
fact AS (
    SELECT DISTINCT r.run_id, f.basis, f.source, f.quantity AS name, CAST(0 AS HUGEINT) AS energy_fj
    FROM internal.run AS r
    JOIN internal.hardware_fact AS f ON f.hardware_digest = r.hardware_digest
    WHERE r.run_id IN (SELECT unnest($run_ids)) AND r.refusal IS NULL
),
number AS (
    SELECT run_id, basis, source, name, energy_fj
    FROM priced
    UNION ALL
    SELECT run_id, basis, source, name, energy_fj
    FROM fact
),
rest AS (
    SELECT
        run_id,
        basis,
        source,
        count(DISTINCT name) AS number_count,
        array_to_string(list_sort(list_distinct(list(name))), ', ') AS numbers,
        sum(energy_fj) AS energy_fj
    FROM number
    GROUP BY run_id, basis, source
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    s.basis,
    s.source,
    s.number_count,
    s.numbers,
    s.energy_fj,
    fraction(s.energy_fj, sum(s.energy_fj) OVER (PARTITION BY s.run_id)) AS run_fraction,
    s.run_id
FROM rest AS s
JOIN run_configurations AS r ON r.run_id = s.run_id
ORDER BY list_position($run_ids, s.run_id), s.run_id, run_fraction DESC NULLS LAST, s.basis, s.source
