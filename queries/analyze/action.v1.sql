/*
record = "ActionShare"
summary = "Energy of a run by action: count x energy per action"
grain = "one row per action; actions sum to their category and to the run, exactly"
order = ["category_fj descending", "category", "energy_fj descending", "component", "action", "part", "per"]
*/
SELECT
    v.category, v.common_category, v.component, v.action, v.part, v.per, v.action_count, v.energy_per_action_j,
    v.energy_fj, v.energy_j, v.energy_fraction, v.category_fraction, v.basis, v.source
FROM cube.cause(run_ids := [$run_id]) AS v
ORDER BY v.category_fj DESC, v.category, v.energy_fj DESC, v.component, v.action, v.part, v.per
