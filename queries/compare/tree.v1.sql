/*
record = "EnergyBranch"
summary = "Energy of several runs by category of their architectures and action"
grain = "one row per run, category and action; the rows of a run sum to its energy, exactly"
from = "cube.cause(run_ids := $run_ids)"
columns = [
    "model", "hardware", "category", "category_fj AS category_energy_fj", "category_j AS category_energy_j",
    "category_share_fraction AS category_fraction", "common_category", "component", "action", "part", "energy_fj",
    "energy_j", "share_fraction", "category_fraction AS category_share_fraction", "run_id",
]
order = ["position", "run_id", "category_fj descending", "category", "energy_fj descending", "component", "action", "part"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`, of up to 32 workloads" }
*/
