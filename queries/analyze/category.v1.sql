/*
record = "CategoryShare"
summary = "Energy of a run by category of its architecture"
grain = "one row per category; categories sum to the run, exactly"
table = [
    "category.kept", "common_categories", "parts", 'kind_count.headed("actions")', "energy_j.kept",
    "energy_fraction.kept", "largest_action", "largest_action_fraction",
]
order = ["energy_fj descending", "category"]
[columns]
energy_fraction = { heading = "energy share" }
largest_action_fraction = { heading = "share of category" }
*/
SELECT
    v.category, v.common_categories, v.parts, v.kind_count, v.energy_fj, v.energy_j, v.energy_fraction,
    v.largest_action, v.largest_action_fraction
FROM cube.category(run_ids := [$run_id]) AS v
ORDER BY v.energy_fj DESC, v.category
