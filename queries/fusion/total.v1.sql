/*
record = "FusionTotal"
summary = "Savings by fusion of a run: energy, latency, energy x delay, bytes, kernels"
grain = "one row"
[parameters]
run_b = { type = "INTEGER", meaning = "the fused run" }
[columns]
runtime = { type = "VARCHAR", meaning = "runtime of the fused run" }
separate_runtime = { type = "VARCHAR", meaning = "runtime of the separate operators: graph, without host cost, or eager" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs that run fused" }
fused_subgraph_count = { type = "BIGINT", meaning = "number of subgraphs with fewer kernels fused than separate" }
operator_count = { type = "BIGINT", meaning = "operators that run fused" }
passed_count = { type = "BIGINT", meaning = "subgraphs whose fused kernel has a pass that the runtime adds" }
clock_fraction = { type = "DOUBLE", meaning = "share of the full clock, fused; below 1 where the power cap lowers the clock" }
separate_clock_fraction = { type = "DOUBLE", meaning = "share of the full clock, separate" }
bias_addition_count = { type = "BIGINT", meaning = "additions of the biases of GEMMs" }
bias_element_count = { type = "BIGINT", meaning = "elements of the biases of GEMMs" }
kernel_count = { type = "BIGINT", meaning = "kernels of the fused run" }
separate_kernel_count = { type = "BIGINT", meaning = "kernels if every ATen call is one kernel" }
separate_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "separate energy, exact" }
separate_energy_j = { type = "DOUBLE", unit = "J", meaning = "separate energy" }
separate_latency_fs = { type = "HUGEINT", unit = "fs", meaning = "separate latency, exact" }
separate_latency_s = { type = "DOUBLE", unit = "s", meaning = "separate latency" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E T, fused" }
separate_edp_js = { type = "DOUBLE", unit = "Js", meaning = "E T of the separate energies and latencies" }
saved_edp_js = { type = "DOUBLE", unit = "Js", meaning = "saving: separate minus fused; negative where fusion costs" }
saved_edp_fraction = { type = "DOUBLE", null = true, meaning = "saved_edp_js over separate_edp_js" }
separate_dram_bytes = { type = "DOUBLE", unit = "B", meaning = "separate: bytes read and written off chip" }
separate_moved_bytes = { type = "DOUBLE", unit = "B", meaning = "separate: bytes across kernel boundaries" }
separate_pass_bytes = { type = "DOUBLE", unit = "B", meaning = "separate: bytes read and written again by passes that the runtime adds, such as a bias as its own kernel" }
run_id = { type = "INTEGER", meaning = "number of the fused run" }
separate_run_id = { type = "INTEGER", meaning = "number of the run whose operators are separate" }
*/
WITH subgraph AS (
    SELECT
        count(*) FILTER (WHERE energy_fj > 0) AS subgraph_count,
        count(*) FILTER (WHERE energy_fj > 0 AND kernel_count < separate_kernel_count) AS fused_subgraph_count,
        count(*) FILTER (WHERE pass_bytes > 0) AS passed_count
    FROM cube.saving(run_a := $run_a, run_b := $run_b, division := 'subgraph')
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    r.architecture,
    r.batch,
    r.precision_label AS "precision",
    r.runtime,
    CASE WHEN is_merging(a.runtime) THEN 'graph' ELSE a.runtime END AS separate_runtime,
    r.is_projection,
    s.subgraph_count,
    s.fused_subgraph_count,
    p.operator_count - p.folded_count AS operator_count,
    p.folded_count,
    s.passed_count,
    r.clock_fraction,
    a.separate_clock_fraction,
    p.biased_count,
    p.bias_addition_count,
    p.bias_element_count,
    p.kernel_count,
    p.separate_kernel_count,
    p.energy_fj,
    p.energy_j,
    p.separate_energy_fj,
    p.separate_energy_j,
    p.saved_energy_fj,
    p.saved_energy_j,
    p.saved_energy_fraction,
    p.latency_fs,
    p.latency_s,
    p.separate_latency_fs,
    p.separate_latency_s,
    p.saved_latency_fs,
    p.saved_latency_s,
    p.saved_latency_fraction,
    p.edp_share_js AS edp_js,
    p.separate_edp_share_js AS separate_edp_js,
    p.saved_edp_share_js AS saved_edp_js,
    p.saved_edp_fraction,
    p.dram_bytes,
    p.separate_dram_bytes,
    p.saved_dram_bytes,
    p.saved_dram_fraction,
    p.moved_bytes,
    p.separate_moved_bytes,
    p.saved_moved_bytes,
    p.saved_moved_fraction,
    p.pass_bytes,
    p.separate_pass_bytes,
    r.run_id,
    a.run_id AS separate_run_id
FROM cube.saving(run_a := $run_a, run_b := $run_b) AS p
JOIN run_configurations AS r ON r.run_id = $run_b
JOIN internal.run AS a ON a.run_id = $run_a
CROSS JOIN subgraph AS s
ORDER BY r.run_id
