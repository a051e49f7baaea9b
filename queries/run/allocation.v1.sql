/*
name = "run.allocation"
record = "Allocation"
version = 1
schema = 1
summary = "Where each subgraph of one run is placed, how long it takes and what bounds it"
grain = "one row per subgraph that runs; latencies sum to the run, exactly"
order = ["subgraph_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "in the order of first operators" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave" }
units_total_count = { type = "INTEGER", meaning = "units that have this precision" }
tile_count = { type = "DOUBLE", meaning = "tiles of work" }
wave_count = { type = "DOUBLE", meaning = "rounds of tiles over the units" }
wave_fill_fraction = { type = "DOUBLE", null = true, meaning = "tiles over waves x units; null without tiles" }
executed_mac_count = { type = "DOUBLE", null = true, meaning = "MAC slots of its tiles, padding included" }
padding_fraction = { type = "DOUBLE", null = true, meaning = "part of those slots without a MAC" }
kernel_count = { type = "INTEGER", meaning = "kernels launched: one in fused, one per operator otherwise" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency" }
compute_s = { type = "DOUBLE", unit = "s", meaning = "time of the units, padded tiles and partial waves included" }
memory_s = { type = "DOUBLE", unit = "s", meaning = "time of the slowest memory level" }
launch_s = { type = "DOUBLE", unit = "s", meaning = "fixed cost of its kernels" }
bottleneck = { type = "VARCHAR", meaning = "the largest of compute, memory and launch time" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip" }
moved_bytes = { type = "DOUBLE", unit = "B", meaning = "across the borders of its kernels" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written again by passes that the runtime adds" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows within its latency" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = true, meaning = "attained over published off-chip bandwidth, within its latency" }
*/
SELECT
    s.subgraph_index,
    s.units_used_count,
    s.units_total_count,
    s.tile_count,
    s.wave_count,
    s.wave_fill_fraction,
    s.executed_mac_count,
    s.padding_fraction,
    s.kernel_count,
    t.latency_fs,
    s.latency_s,
    s.compute_s,
    s.memory_s,
    s.launch_s,
    s.bottleneck,
    s.dram_bytes,
    s.moved_bytes,
    s.pass_bytes,
    s.compute_utilization_fraction,
    s.bandwidth_utilization_fraction
FROM subgraph_results AS s
JOIN run_subgraph AS t ON t.run_id = s.run_id AND t.subgraph_index = s.subgraph_index
WHERE s.run_id = $run_id
ORDER BY s.subgraph_index
