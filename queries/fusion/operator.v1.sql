/*
record = "FusionOperator"
summary = "Savings by fusion of each operator"
grain = "one row per operator; energies, latencies, shares and bytes add up to the run"
table = [
    "name", "operation.kept", "fusion_pattern", "kernel_count.kept", "saved_energy_j.ranking.drawn", "saved_energy_fraction",
    "saved_latency_s", "saved_latency_fraction", "saved_edp_share_js", "saved_edp_fraction", "saved_dram_bytes",
    "saved_moved_bytes", "pass_bytes", "energy_j", "separate_energy_j", "latency_s", "separate_latency_s",
]
order = ["saved_edp_share_js descending", "operator_index"]
[parameters]
run_b = { type = "INTEGER", meaning = "the fused run" }
[columns]
operation = { type = "VARCHAR", meaning = "operations of its kernel in order, and where a bias is part of it" }
saved_latency_s = { heading = "time saved" }
saved_dram_bytes = { heading = "off-chip bytes saved" }
saved_energy_j = { heading = "energy saved" }
fusion_pattern = { heading = "pattern" }
name = { heading = "operator" }
saved_latency_fraction = { heading = "of its time" }
saved_moved_bytes = { heading = "bytes moved saved" }
saved_energy_fraction = { heading = "of its energy" }
saved_edp_fraction = { heading = "of the run's EDP" }
pass_bytes = { heading = "extra passes" }
separate_latency_s = { heading = "separate time" }
latency_s = { heading = "time" }
saved_edp_share_js = { heading = "EDP saved" }
kernel_count = { shown = "{separate_kernel_count} → {kernel_count}" }
*/
SELECT
    v.operator_index, v.subgraph_index, v.name,
    v.operations AS operation,
    v.kind, v.fusion_pattern, v.is_folded, v.bias_addition_count, v.bias_element_count, v.kernel_count,
    v.separate_kernel_count, v.energy_fj, v.energy_j, v.separate_energy_fj, v.separate_energy_j, v.saved_energy_fj,
    v.saved_energy_j, v.saved_energy_fraction, v.latency_fs, v.latency_s,
    v.separate_latency_fs, v.separate_latency_s, v.saved_latency_fs, v.saved_latency_s, v.saved_latency_fraction,
    v.edp_share_js, v.separate_edp_share_js, v.saved_edp_share_js,
    v.saved_edp_fraction, v.dram_bytes, v.separate_dram_bytes, v.saved_dram_bytes,
    v.saved_dram_fraction, v.moved_bytes, v.separate_moved_bytes, v.saved_moved_bytes, v.saved_moved_fraction,
    v.pass_bytes, v.separate_pass_bytes
FROM cube.saving(run_a := $run_a, run_b := $run_b, division := 'operator') AS v
ORDER BY v.saved_edp_share_js DESC, v.operator_index
