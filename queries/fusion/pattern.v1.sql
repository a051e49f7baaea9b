/*
record = "FusionPattern"
summary = "Savings by fusion of each fusion pattern"
grain = "one row per fusion pattern; energies, latencies, shares and bytes add up to the run"
from = "cube.saving(run_a := $run_a, run_b := $run_b, division := 'pattern')"
columns = [
    "fusion_pattern", "subgraph_count", "operator_count", "biased_count", "bias_addition_count",
    "bias_element_count", "kernel_count", "separate_kernel_count", "energy_fj", "energy_j", "separate_energy_fj",
    "separate_energy_j", "saved_energy_fj", "saved_energy_j", "saved_energy_fraction", "saved_energy_share_fraction",
    "latency_fs", "latency_s", "separate_latency_fs", "separate_latency_s", "saved_latency_fs", "saved_latency_s",
    "saved_latency_fraction", "saved_latency_share_fraction", "edp_share_js", "separate_edp_share_js",
    "saved_edp_share_js", "saved_edp_fraction", "saved_edp_share_fraction", "dram_bytes", "separate_dram_bytes",
    "saved_dram_bytes", "saved_dram_fraction", "moved_bytes", "separate_moved_bytes", "saved_moved_bytes",
    "saved_moved_fraction", "pass_bytes", "separate_pass_bytes",
]
order = ["saved_edp_share_js descending", "fusion_pattern"]
[parameters]
run_b = { type = "INTEGER", meaning = "the fused run" }
*/
