/*
record = "ArchitectureAction"
summary = "Energy of one MAC on each architecture by action: count per MAC x energy per action"
grain = "one row per evaluated run and action; those of a run sum to its energy, exactly"
from = "cube.cause(run_ids := $run_ids)"
columns = [
    "architecture", "hardware", "rank", "category_rank", "common_category", "category", "component", "action", "per",
    "action_count", "count_per_mac", "energy_per_action_j", "energy_fj", "energy_j", "energy_per_mac_j",
    "share_fraction", "basis", "source", "run_id",
]
order = ["position", "run_id", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one model, one of each architecture" }
*/
