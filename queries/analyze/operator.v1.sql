/*
record = "OperatorShare"
summary = "Operators of a run: energy by part, latency, share, and the saving by fusion"
grain = "one row per operator; energies and latencies sum to the run, exactly"
table = [
    "operator_index", "name.kept", "kind", "subgraph_index", "energy_j.kept", 'compute_energy_j.headed("compute")',
    'memory_energy_j.headed("memory")', 'control_energy_j.headed("control")', 'static_energy_j.headed("static")',
    "energy_fraction.kept", "latency_s.kept", "latency_fraction.kept", "edp_share_fraction.kept", "is_fused",
    "separate_energy_j", "separate_latency_s", "saved_energy_j", "saved_latency_s", "bias_element_count",
    "dram_bytes", "pass_bytes",
]
order = ["operator_index"]
[columns]
energy_fraction = { heading = "energy share" }
is_fused = { heading = "fused" }
saved_latency_s = { heading = "latency saved" }
saved_energy_j = { heading = "energy saved" }
separate_latency_s = { heading = "unfused latency" }
operator_index = { heading = "#" }
name = { heading = "operator" }
latency_fraction = { heading = "time share" }
bias_element_count = { heading = "bias elements" }
pass_bytes = { heading = "extra passes" }
separate_energy_j = { heading = "unfused energy" }
subgraph_index = { heading = "subgraph" }
dram_bytes = { heading = "off-chip traffic" }
edp_share_fraction = { heading = "EDP share" }
*/
SELECT
    v.operator_index, v.subgraph_index, v.name, v.operation, v.kind, v.mac_count, v.energy_fj, v.energy_j,
    v.compute_energy_j, v.memory_energy_j, v.control_energy_j, v.static_energy_j,
    v.energy_fraction,
    v.latency_fs, v.latency_s, v.latency_fraction, v.edp_share_js, v.edp_share_fraction, v.is_fused,
    v.separate_energy_j, v.separate_latency_s, v.saved_energy_j, v.saved_latency_s, v.dram_bytes, v.pass_bytes,
    v.bias_addition_count, v.bias_element_count
FROM cube.part(run_ids := [$run_id], division := 'operator') AS v
ORDER BY v.operator_index
