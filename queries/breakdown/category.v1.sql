/*
record = "PartCategory"
summary = "Energy of each subgraph or operator by category"
grain = "one row per part of a run and category; categories sum to their part and parts to the run, exactly"
from = "cube.category(run_ids := $run_ids, division := $level, within := $subgraph, is_common := $is_common)"
columns = [
    "run_id", "model", "hardware", "place_index AS part_index", "name", "operation AS kind", "fusion_pattern",
    "category", "common_categories", "kind_count", "energy_fj", "energy_j", "share_fraction", "run_fraction",
    "whole_energy_fj", "largest_action", "largest_action_fraction",
]
order = ["position", "run_id", "place_index", "energy_fj descending", "category"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are omitted" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph; empty for all" }
is_common = { type = "BOOLEAN", default = false, meaning = "true for categories that all architectures share, false for the architecture's own" }
*/
