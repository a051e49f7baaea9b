/*
summary = "Share of the energy that rests on published numbers recalled without checking the source"
grain = "one row per run in which it is at least a tenth"
order = ["run_id"]
[columns]
share_fraction = { type = "DOUBLE", meaning = "share of the energy whose energy per action is recalled" }
*/
SELECT run_id, recalled_energy_fraction AS share_fraction
FROM cube.run(run_ids := $run_ids)
WHERE recalled_energy_fraction >= 0.1e0
ORDER BY run_id
