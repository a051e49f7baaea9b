/*
record = "PartAction"
summary = "Energy of runs, or of each subgraph or operator, by action: count x energy per action"
grain = "one row per part of a run and action; actions sum to their part and parts to the run, exactly"
table = [
    "name.if_any.kept", "component.kept", "action.kept", "energy_j.kept", "energy_fraction.kept", "hardware",
    "run_fraction.kept", "action_count", "per", "energy_per_action_j", "basis", "category",
]
order = ["position", "run_id", "part_index", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are omitted" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph; empty for all" }
[columns]
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index; 0 for the run" }
fusion_pattern = { heading = "pattern", type = "VARCHAR", meaning = "operations of its subgraph in order; empty for a run" }
kind = { type = "VARCHAR", meaning = "empty for a run; operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
action_count = { heading = "count" }
name = { heading = "part", type = "VARCHAR", meaning = "name of the operator, or of the subgraph's leading operator; empty for a run" }
energy_per_action_j = { heading = "energy each" }
energy_fraction = { heading = "share" }
*/
SELECT
    v.run_id, v.model, v.hardware,
    v.part_index AS part_index,
    coalesce(v.name, '') AS name,
    coalesce(v.operation, '') AS kind,
    coalesce(v.fusion_pattern, '') AS fusion_pattern, v.category, v.common_category, v.component, v.action, v.part, v.per, v.action_count,
    v.energy_per_action_j, v.energy_fj, v.energy_j, v.energy_fraction, v.run_fraction, v.whole_energy_fj, v.basis,
    v.source
FROM cube.cause(run_ids := $run_ids, division := $level, within := $subgraph) AS v
ORDER BY v.position, v.run_id, v.part_index, v.rank
