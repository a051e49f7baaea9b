/*
record = "EnergyBranch"
summary = "Energy of several runs by category of their architectures and action"
grain = "one row per run, category and action; the rows of a run sum to its energy, exactly"
order = ["position", "run_id", "category_fj descending", "category", "energy_fj descending", "component", "action", "part"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`, of up to 32 workloads" }
[columns]
category_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's energy that the category takes" }
category_share_fraction = { type = "DOUBLE", null = true, meaning = "share of the category's energy that the action takes" }
category_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the category in the run, exact" }
category_energy_j = { type = "DOUBLE", unit = "J", meaning = "energy of the category in the run" }
*/
SELECT
    v.model, v.hardware, v.category,
    v.category_fj AS category_energy_fj,
    v.category_j AS category_energy_j,
    v.category_share_fraction AS category_fraction,
    v.common_category, v.component, v.action, v.part, v.energy_fj, v.energy_j, v.share_fraction,
    v.category_fraction AS category_share_fraction,
    v.run_id
FROM cube.cause(run_ids := $run_ids) AS v
ORDER BY v.position, v.run_id, v.category_fj DESC, v.category, v.energy_fj DESC, v.component, v.action, v.part
