/*
record = "CategoryShare"
summary = "Energy of a run by category of its architecture"
grain = "one row per category; categories sum to the run, exactly"
from = "cube.category(run_ids := [$run_id])"
columns = [
    "category", "common_categories", "parts", "kind_count", "energy_fj", "energy_j", "share_fraction",
    "largest_action", "largest_action_fraction",
]
order = ["energy_fj descending", "category"]
*/
