/*
name = "fusion.subgraph"
record = "FusionSubgraph"
version = 1
schema = 1
summary = "What fusing saves, subgraph by subgraph"
grain = "one row per subgraph; energies, latencies, shares and bytes add up to the run"
order = ["saved_edp_share_js descending", "subgraph_index"]
[parameters]
run_a = { type = "INTEGER", meaning = "run whose operators are kernels of their own: the fused run itself, or one of the same workload in graph or eager" }
run_b = { type = "INTEGER", meaning = "the fused run" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "in the order of first operators" }
name = { type = "VARCHAR", meaning = "operator that leads it" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
operations = { type = "VARCHAR", meaning = "what its kernel does, in order, and where a bias is part of it" }
operator_count = { type = "BIGINT", meaning = "operators in it" }
biased_count = { type = "BIGINT", meaning = "convolutions and linear layers that add a bias as part of themselves" }
bias_addition_count = { type = "BIGINT", meaning = "additions that they make of it" }
bias_element_count = { type = "BIGINT", meaning = "elements of their biases" }
kernel_count = { type = "BIGINT", meaning = "kernels that run" }
separate_kernel_count = { type = "BIGINT", meaning = "kernels where every ATen call is one" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "fused, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "fused" }
separate_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "as kernels of their own, exact" }
separate_energy_j = { type = "DOUBLE", unit = "J", meaning = "as kernels of their own" }
saved_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "separate minus fused, exact; below 0 where fusing costs" }
saved_energy_j = { type = "DOUBLE", unit = "J", meaning = "separate minus fused; below 0 where fusing costs" }
saved_energy_fraction = { type = "DOUBLE", null = true, meaning = "of what it takes separately" }
saved_energy_share_fraction = { type = "DOUBLE", null = true, meaning = "of the energy that the run saves" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "fused, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "fused" }
separate_latency_fs = { type = "HUGEINT", unit = "fs", meaning = "as kernels of their own, exact" }
separate_latency_s = { type = "DOUBLE", unit = "s", meaning = "as kernels of their own" }
saved_latency_fs = { type = "HUGEINT", unit = "fs", meaning = "separate minus fused, exact; below 0 where fusing costs" }
saved_latency_s = { type = "DOUBLE", unit = "s", meaning = "separate minus fused; below 0 where fusing costs" }
saved_latency_fraction = { type = "DOUBLE", null = true, meaning = "of what it takes separately" }
saved_latency_share_fraction = { type = "DOUBLE", null = true, meaning = "of the latency that the run saves" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "fused: (E_i T + E t_i) / 2; adds up to E T of the fused run" }
separate_edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "separate: the same of the separate energies and latencies" }
saved_edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(dE_i (T + T') + (E + E') dt_i) / 2 of what is saved; adds up to E T separate minus E T fused, and is 0 where nothing changes" }
saved_edp_fraction = { type = "DOUBLE", null = true, meaning = "of the run's separate energy-delay product" }
saved_edp_share_fraction = { type = "DOUBLE", null = true, meaning = "of the energy-delay product that the run saves" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "fused: read and written off chip" }
separate_dram_bytes = { type = "DOUBLE", unit = "B", meaning = "as kernels of their own: read and written off chip" }
saved_dram_bytes = { type = "DOUBLE", unit = "B", meaning = "separate minus fused" }
saved_dram_fraction = { type = "DOUBLE", null = true, meaning = "of what moves off chip separately" }
moved_bytes = { type = "DOUBLE", unit = "B", meaning = "fused: crossing kernel boundaries at any level" }
separate_moved_bytes = { type = "DOUBLE", unit = "B", meaning = "as kernels of their own: crossing their boundaries" }
saved_moved_bytes = { type = "DOUBLE", unit = "B", meaning = "separate minus fused" }
saved_moved_fraction = { type = "DOUBLE", null = true, meaning = "of what crosses separately" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "fused: written and read again by passes that the runtime adds, an epilogue of a library's product" }
separate_pass_bytes = { type = "DOUBLE", unit = "B", meaning = "as kernels of their own: of such passes, a bias in a kernel of its own" }
*/
SELECT
    subgraph_index,
    subgraph_name AS name,
    fusion_pattern,
    operations,
    operator_count,
    biased_count,
    bias_addition_count,
    bias_element_count,
    kernel_count,
    separate_kernel_count,
    energy_fj,
    energy_j,
    separate_energy_fj,
    separate_energy_j,
    saved_energy_fj,
    saved_energy_j,
    saved_energy_fraction,
    saved_energy_share_fraction,
    latency_fs,
    latency_s,
    separate_latency_fs,
    separate_latency_s,
    saved_latency_fs,
    saved_latency_s,
    saved_latency_fraction,
    saved_latency_share_fraction,
    edp_share_js,
    separate_edp_share_js,
    saved_edp_share_js,
    saved_edp_fraction,
    saved_edp_share_fraction,
    dram_bytes,
    separate_dram_bytes,
    saved_dram_bytes,
    saved_dram_fraction,
    moved_bytes,
    separate_moved_bytes,
    saved_moved_bytes,
    saved_moved_fraction,
    pass_bytes,
    separate_pass_bytes
FROM fusion_parts($run_a, $run_b, 'subgraph')
ORDER BY saved_edp_share_js DESC, subgraph_index
