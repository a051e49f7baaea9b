/*
record = "ActionShare"
summary = "Energy of a run by action: count x energy per action"
grain = "one row per action; actions sum to their category and to the run, exactly"
from = "cube.cause(run_ids := [$run_id])"
columns = [
    "category", "common_category", "component", "action", "part", "per", "action_count", "energy_per_action_j",
    "energy_fj", "energy_j", "share_fraction", "category_fraction", "basis", "source",
]
order = ["category_fj descending", "category", "energy_fj descending", "component", "action", "part", "per"]
*/
