/*
record = "PartCategory"
summary = "Energy of runs, or of each subgraph or operator, by category"
grain = "one row per part of a run and category; categories sum to their part and parts to the run, exactly"
table = [
    "name.if_any.kept", "category.kept", "energy_j.kept", "energy_fraction.kept", "hardware", "run_fraction.kept",
    "largest_action", "largest_action_fraction", "common_categories", "fusion_pattern",
]
order = ["position", "run_id", "part_index", "energy_fj descending", "category"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are omitted" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph; empty for all" }
is_common = { type = "BOOLEAN", default = false, meaning = "true for categories that all architectures share, false for the architecture's own" }
[columns]
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index; 0 for the run" }
fusion_pattern = { heading = "pattern", type = "VARCHAR", meaning = "operations of its subgraph in order; empty for a run" }
kind = { type = "VARCHAR", meaning = "empty for a run; operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
name = { heading = "part", type = "VARCHAR", meaning = "name of the operator, or of the subgraph's leading operator; empty for a run" }
energy_fraction = { heading = "share" }
largest_action_fraction = { heading = "share of category" }
*/
SELECT
    v.run_id, v.model, v.hardware,
    v.part_index AS part_index,
    coalesce(v.name, '') AS name,
    coalesce(v.operation, '') AS kind,
    coalesce(v.fusion_pattern, '') AS fusion_pattern, v.category, v.common_categories, v.kind_count, v.energy_fj, v.energy_j, v.energy_fraction,
    v.run_fraction, v.whole_energy_fj, v.largest_action, v.largest_action_fraction
FROM cube.category(run_ids := $run_ids, division := $level, within := $subgraph, is_common := $is_common) AS v
ORDER BY v.position, v.run_id, v.part_index, v.energy_fj DESC, v.category
