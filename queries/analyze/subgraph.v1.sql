/*
name = "analyze.subgraph"
record = "SubgraphShare"
version = 1
schema = 1
summary = "A run subgraph by subgraph: energy by part, latency, bottleneck, allocation"
grain = "one row per subgraph; energies and latencies sum to the run, exactly"
order = ["subgraph_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "in the order of first operators" }
name = { type = "VARCHAR", meaning = "operator that leads it" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
operator_count = { type = "BIGINT", meaning = "operators that run" }
kernel_count = { type = "INTEGER", meaning = "kernels launched: one in fused, one per operator otherwise" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
compute_energy_j = { type = "DOUBLE", unit = "J", meaning = "of arithmetic and its registers" }
memory_energy_j = { type = "DOUBLE", unit = "J", meaning = "of moving and keeping data" }
control_energy_j = { type = "DOUBLE", unit = "J", meaning = "of deciding what happens next, and of what regulators lose" }
static_energy_j = { type = "DOUBLE", unit = "J", meaning = "static power x the time from one batch to the next" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the run's energy" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency" }
latency_fraction = { type = "DOUBLE", null = true, meaning = "of the run's latency" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
edp_share_fraction = { type = "DOUBLE", null = true, meaning = "of the run's energy-delay product" }
bottleneck = { type = "VARCHAR", meaning = "the largest of compute, memory and launch time" }
compute_s = { type = "DOUBLE", unit = "s", meaning = "time of the units, padded tiles and partial waves included" }
memory_s = { type = "DOUBLE", unit = "s", meaning = "time of the slowest memory level" }
launch_s = { type = "DOUBLE", unit = "s", meaning = "fixed cost of its kernels" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave" }
units_total_count = { type = "INTEGER", meaning = "units that have this precision" }
tile_count = { type = "DOUBLE", meaning = "tiles of work" }
wave_count = { type = "DOUBLE", meaning = "rounds of tiles over the units" }
wave_fill_fraction = { type = "DOUBLE", null = true, meaning = "tiles over waves x units; null without tiles" }
executed_mac_count = { type = "DOUBLE", null = true, meaning = "MAC slots of its tiles, padding included" }
padding_fraction = { type = "DOUBLE", null = true, meaning = "part of those slots without a MAC" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows within its latency" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = true, meaning = "attained over published off-chip bandwidth, within its latency" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written again by passes that the runtime adds" }
*/
WITH energy AS (
    SELECT subgraph_index, sum(energy_fj) AS energy_fj
    FROM ledger_line
    WHERE run_id = $run_id
    GROUP BY subgraph_index
)
SELECT
    s.subgraph_index,
    s.name,
    s.fusion_pattern,
    s.operator_count,
    s.kernel_count,
    s.mac_count,
    coalesce(e.energy_fj, 0) AS energy_fj,
    s.energy_j,
    s.compute_energy_j,
    s.memory_energy_j,
    s.control_energy_j,
    s.static_energy_j,
    fraction(coalesce(e.energy_fj, 0), sum(e.energy_fj) OVER ()) AS share_fraction,
    t.latency_fs,
    s.latency_s,
    t.latency_fs / nullif(CAST(sum(t.latency_fs) OVER () AS DOUBLE), 0e0) AS latency_fraction,
    s.edp_share_js,
    (
        fraction(coalesce(e.energy_fj, 0), sum(e.energy_fj) OVER ())
        + t.latency_fs / nullif(CAST(sum(t.latency_fs) OVER () AS DOUBLE), 0e0)
    ) / 2e0 AS edp_share_fraction,
    s.bottleneck,
    s.compute_s,
    s.memory_s,
    s.launch_s,
    s.dram_bytes,
    s.units_used_count,
    s.units_total_count,
    s.tile_count,
    s.wave_count,
    s.wave_fill_fraction,
    s.executed_mac_count,
    s.padding_fraction,
    s.compute_utilization_fraction,
    s.bandwidth_utilization_fraction,
    s.pass_bytes
FROM subgraph_results AS s
JOIN run_subgraph AS t ON t.run_id = s.run_id AND t.subgraph_index = s.subgraph_index
LEFT JOIN energy AS e ON e.subgraph_index = s.subgraph_index
WHERE s.run_id = $run_id
ORDER BY s.subgraph_index
