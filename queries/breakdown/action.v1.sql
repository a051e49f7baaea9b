/*
record = "PartAction"
summary = "Energy of each subgraph or operator by action: count x energy per action"
grain = "one row per part of a run and action; actions sum to their part and parts to the run, exactly"
from = "cube.cause(run_ids := $run_ids, division := $level, within := $subgraph)"
columns = [
    "run_id", "model", "hardware", "place_index AS part_index", "name", "operation AS kind", "fusion_pattern",
    "category", "common_category", "component", "action", "part", "per", "action_count", "energy_per_action_j",
    "energy_fj", "energy_j", "share_fraction", "run_fraction", "whole_energy_fj", "basis", "source",
]
order = ["position", "run_id", "place_index", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are omitted" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph; empty for all" }
*/
