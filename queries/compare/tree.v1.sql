/*
name = "compare.tree"
record = "EnergyBranch"
version = 1
schema = 1
summary = "Where the energy of several runs goes: categories of their architectures and the actions in them"
grain = "one row per run, category and action; the rows of a run sum to its energy, exactly"
order = ["position in run_ids", "category_energy_fj descending", "category", "energy_fj descending", "component", "action", "part"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to look at, as `run.list` shows them, of up to 32 workloads" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
category = { type = "VARCHAR", meaning = "the architecture's own" }
category_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "of the category, exact" }
category_energy_j = { type = "DOUBLE", unit = "J", meaning = "of the category" }
category_fraction = { type = "DOUBLE", null = true, meaning = "of the run's energy" }
common_category = { type = "VARCHAR", meaning = "of the action: compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, control, board or static" }
component = { type = "VARCHAR", meaning = "what acts" }
action = { type = "VARCHAR", meaning = "what it does" }
part = { type = "VARCHAR", meaning = "compute, memory, control or static" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "of the action, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "of the action" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the run's energy" }
category_share_fraction = { type = "DOUBLE", null = true, meaning = "of its category's energy" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH act AS (
    SELECT l.run_id, a.category, a.common_category, a.component, a.action, a.part, sum(l.energy_fj) AS energy_fj
    FROM run_action AS l
    JOIN action AS a ON a.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
        AND CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM run WHERE run_id IN (SELECT unnest($run_ids))) > 32
                THEN error('the runs are of more than 32 workloads; ask about fewer models or batches at once')
            ELSE TRUE
        END
    GROUP BY ALL
),
branch AS (
    SELECT
        run_id,
        category,
        common_category,
        component,
        action,
        part,
        energy_fj,
        sum(energy_fj) OVER (PARTITION BY run_id, category) AS category_fj,
        sum(energy_fj) OVER (PARTITION BY run_id) AS run_fj
    FROM act
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    b.category,
    b.category_fj AS category_energy_fj,
    joules(b.category_fj) AS category_energy_j,
    fraction(b.category_fj, b.run_fj) AS category_fraction,
    b.common_category,
    b.component,
    b.action,
    b.part,
    b.energy_fj,
    joules(b.energy_fj) AS energy_j,
    fraction(b.energy_fj, b.run_fj) AS share_fraction,
    fraction(b.energy_fj, b.category_fj) AS category_share_fraction,
    r.run_id
FROM branch AS b
JOIN run_configurations AS r ON r.run_id = b.run_id
JOIN places_of($run_ids) AS o ON o.run_id = r.run_id
ORDER BY
    o.position, r.run_id, b.category_fj DESC, b.category, b.energy_fj DESC, b.component, b.action,
    b.part
