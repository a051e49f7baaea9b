/*
record = "SubgraphShare"
summary = "Subgraphs of a run: energy by part, latency, bottleneck, allocation"
grain = "one row per subgraph; energies and latencies sum to the run, exactly"
table = [
    'subgraph_index.headed("#")', 'name.headed("subgraph").kept', "fusion_pattern", "energy_j.kept",
    'compute_energy_j.headed("compute")', 'memory_energy_j.headed("memory")', 'control_energy_j.headed("control")',
    'static_energy_j.headed("static")', "energy_fraction.kept", "latency_s.kept", "latency_fraction.kept",
    "bottleneck.kept", 'units_used_count.headed("units")', "tile_count", "wave_count",
    'wave_fill_fraction.headed("wave fill")', 'padding_fraction.headed("padding")',
    "compute_utilization_fraction.kept", "bandwidth_utilization_fraction", "pass_bytes",
]
order = ["subgraph_index"]
[columns]
energy_fraction = { heading = "energy share" }
fusion_pattern = { heading = "pattern" }
latency_fraction = { heading = "time share" }
compute_utilization_fraction = { heading = "utilization" }
bandwidth_utilization_fraction = { heading = "bandwidth" }
pass_bytes = { heading = "extra passes" }
*/
SELECT
    v.subgraph_index, v.name, v.fusion_pattern, v.operator_count, v.kernel_count, v.mac_count, v.energy_fj,
    v.energy_j, v.compute_energy_j, v.memory_energy_j, v.control_energy_j, v.static_energy_j,
    v.energy_fraction,
    v.latency_fs, v.latency_s, v.latency_fraction, v.edp_share_js, v.edp_share_fraction, v.bottleneck, v.compute_s,
    v.memory_s, v.launch_s, v.pass_s, v.dram_bytes, v.units_used_count, v.units_total_count, v.unit_name, v.tile_count,
    v.wave_count, v.wave_fill_fraction, v.executed_mac_count, v.padding_fraction, v.compute_utilization_fraction,
    v.bandwidth_utilization_fraction, v.pass_bytes
FROM cube.part(run_ids := [$run_id], division := 'subgraph') AS v
ORDER BY v.subgraph_index
