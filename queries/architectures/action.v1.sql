/*
record = "ArchitectureAction"
summary = "Energy of one MAC on each architecture by action: count per MAC x energy per action"
grain = "one row per evaluated run and action; the rows of a run sum to its energy, exactly"
order = ["position", "run_id", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one model, one of each architecture" }
[columns]
energy_per_mac_j = { heading = "energy per MAC" }
per = { shown = "words" }
*/
SELECT
    v.architecture, v.hardware, v.rank, v.category_rank, v.common_category, v.category, v.component, v.action, v.per,
    v.action_count, v.count_per_mac, v.energy_per_action_j, v.energy_fj, v.energy_j, v.energy_per_mac_j,
    v.energy_fraction, v.basis, v.source, v.run_id
FROM cube.cause(run_ids := $run_ids) AS v
ORDER BY v.position, v.run_id, v.rank
