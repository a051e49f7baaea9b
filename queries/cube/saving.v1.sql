/*
summary = "Savings by fusion of a run, its fusion patterns, subgraphs or operators, against its operators as separate kernels"
grain = "one row per part; energies, latencies, shares and bytes add up to the run"
order = ["saved_edp_share_js descending", "subgraph_index", "operator_index", "fusion_pattern"]
[parameters]
run_a = { type = "INTEGER", meaning = "run with separate kernels: the fused run itself, or one of the same workload in graph or eager" }
run_b = { type = "INTEGER", meaning = "fused run; an operator that it folds away costs nothing there" }
division = { type = "VARCHAR", default = "run", meaning = "run, pattern, subgraph or operator" }
[columns]
subgraph_index = { type = "INTEGER", of = "subgraph, operator", meaning = "order of first operators" }
operator_index = { type = "INTEGER", of = "operator", meaning = "execution order" }
name = { type = "VARCHAR", of = "subgraph, operator", meaning = "name of the operator, or of the subgraph's leading operator" }
kind = { type = "VARCHAR", of = "operator", meaning = "kind of operator" }
operations = { type = "VARCHAR", of = "subgraph, operator", meaning = "operations of its kernel in order, and where a bias is part of it" }
fusion_pattern = { type = "VARCHAR", of = "pattern, subgraph, operator", meaning = "operations of its subgraph in order" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs in the part" }
operator_count = { type = "BIGINT", meaning = "operators in the part" }
folded_count = { type = "BIGINT", meaning = "operators that depend on no input: the separate run computes them, the fused run does not" }
is_folded = { type = "BOOLEAN", meaning = "true if it depends on no input, so that a compiler computes it once and the fused run not at all" }
biased_count = { type = "BIGINT", meaning = "convolutions and linear layers that add a bias as part of themselves" }
bias_addition_count = { type = "BIGINT", meaning = "additions of its bias; 0 without one" }
bias_element_count = { type = "BIGINT", meaning = "elements of its bias" }
kernel_count = { type = "BIGINT", meaning = "number of kernels; for an operator, 1 where it leads a kernel, else 0" }
separate_kernel_count = { type = "BIGINT", meaning = "number of separate kernels, one per ATen call; for an operator, 1 where it leads a call, else 0" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "fused energy, exact" }
separate_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "separate energy, exact" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "fused latency, exact" }
separate_latency_fs = { type = "HUGEINT", unit = "fs", meaning = "separate latency, exact" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "fused: bytes read and written off chip" }
separate_dram_bytes = { type = "DOUBLE", unit = "B", meaning = "separate: bytes read and written off chip" }
moved_bytes = { type = "DOUBLE", unit = "B", meaning = "fused: bytes across kernel boundaries at any level" }
separate_moved_bytes = { type = "DOUBLE", unit = "B", meaning = "separate: bytes across kernel boundaries at any level" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "fused: bytes written and read again by passes that the runtime adds, such as an epilogue after a library's GEMM" }
separate_pass_bytes = { type = "DOUBLE", unit = "B", meaning = "separate: bytes of such passes, such as a bias as its own kernel, or a separate batch norm" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "fused: (E_i T + E t_i) / 2; sums to E T of the fused run" }
separate_edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "separate: (E_i T + E t_i) / 2; sums to E T of the separate operators" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "fused energy" }
separate_energy_j = { type = "DOUBLE", unit = "J", meaning = "energy as separate kernels" }
saved_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "saving of energy: separate minus fused, exact; negative where fusion costs" }
saved_energy_j = { type = "DOUBLE", unit = "J", meaning = "saving of energy: separate minus fused; negative where fusion costs" }
saved_energy_fraction = { type = "DOUBLE", null = true, meaning = "saved_energy_j over separate_energy_j" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "fused latency" }
separate_latency_s = { type = "DOUBLE", unit = "s", meaning = "latency as separate kernels" }
saved_latency_fs = { type = "HUGEINT", unit = "fs", meaning = "saving of latency: separate minus fused, exact; negative where fusion costs" }
saved_latency_s = { type = "DOUBLE", unit = "s", meaning = "saving of latency: separate minus fused; negative where fusion costs" }
saved_latency_fraction = { type = "DOUBLE", null = true, meaning = "saved_latency_s over separate_latency_s" }
saved_edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(dE_i (T + T') + (E + E') dt_i) / 2 of the saving; sums to E T separate minus E T fused, and is 0 without a change" }
saved_edp_fraction = { type = "DOUBLE", null = true, meaning = "saved_edp_share_js over the run's separate energy-delay product" }
saved_dram_bytes = { type = "DOUBLE", unit = "B", meaning = "saving of off-chip bytes: separate minus fused" }
saved_dram_fraction = { type = "DOUBLE", null = true, meaning = "saved_dram_bytes over separate_dram_bytes" }
saved_moved_bytes = { type = "DOUBLE", unit = "B", meaning = "saving of bytes across kernel boundaries: separate minus fused" }
saved_moved_fraction = { type = "DOUBLE", null = true, meaning = "saved_moved_bytes over separate_moved_bytes" }
*/
WITH spent AS (
    SELECT operator_index, sum(energy_fj) AS energy_fj
    FROM internal.ledger_line
    WHERE run_id = $run_b
    GROUP BY operator_index
),
fused AS (
    SELECT
        o.operator_index,
        o.kernel_count,
        coalesce(e.energy_fj, 0) AS energy_fj,
        o.latency_fs,
        o.dram_bytes,
        o.moved_bytes,
        o.pass_bytes
    FROM internal.run_operator AS o
    LEFT JOIN spent AS e ON e.operator_index = o.operator_index
    WHERE o.run_id = $run_b
),
beside AS (
    SELECT
        q.operator_index,
        q.subgraph_index,
        q.name,
        q.operation,
        q.kind,
        g.name AS subgraph_name,
        g.pattern AS fusion_pattern,
        q.bias_addition_count,
        q.bias_element_count,
        f.operator_index IS NULL AS is_folded,
        coalesce(f.kernel_count, 0) AS kernel_count,
        s.separate_kernel_count,
        coalesce(f.energy_fj, 0) AS energy_fj,
        s.separate_energy_fj,
        coalesce(f.latency_fs, 0) AS latency_fs,
        s.separate_latency_fs,
        coalesce(f.dram_bytes, 0e0) AS dram_bytes,
        s.separate_dram_bytes,
        coalesce(f.moved_bytes, 0e0) AS moved_bytes,
        s.separate_moved_bytes,
        coalesce(f.pass_bytes, 0e0) AS pass_bytes,
        s.separate_pass_bytes
    FROM internal.run AS a
    JOIN internal.run AS b ON b.workload_id = a.workload_id
    JOIN internal.run_operator AS s ON s.run_id = a.run_id
    JOIN counted_operators AS q ON q.workload_id = a.workload_id AND q.operator_index = s.operator_index
    JOIN internal.workload_subgraph AS g ON g.workload_id = a.workload_id AND g.subgraph_index = q.subgraph_index
    LEFT JOIN fused AS f ON f.operator_index = s.operator_index
    WHERE a.run_id = $run_a AND b.run_id = $run_b
),
part AS (
    SELECT
        CASE WHEN $division = 'pattern' THEN fusion_pattern END AS own_pattern,
        CASE WHEN $division IN ('subgraph', 'operator') THEN subgraph_index END AS own_subgraph_index,
        CASE WHEN $division = 'operator' THEN operator_index END AS own_operator_index,
        any_value(fusion_pattern) AS fusion_pattern,
        CASE WHEN $division = 'operator' THEN any_value(name) ELSE any_value(subgraph_name) END AS name,
        any_value(kind) AS kind,
        string_agg(
            operation || CASE WHEN bias_addition_count > 0 THEN ' with bias' ELSE '' END, '+' ORDER BY operator_index
        ) AS operations,
        count(DISTINCT subgraph_index) AS subgraph_count,
        count(*) AS operator_count,
        count(*) FILTER (WHERE is_folded) AS folded_count,
        count(*) FILTER (WHERE bias_addition_count > 0) AS biased_count,
        CAST(sum(bias_addition_count) AS BIGINT) AS bias_addition_count,
        CAST(sum(bias_element_count) AS BIGINT) AS bias_element_count,
        CAST(sum(kernel_count) AS BIGINT) AS kernel_count,
        CAST(sum(separate_kernel_count) AS BIGINT) AS separate_kernel_count,
        sum(energy_fj) AS energy_fj,
        sum(separate_energy_fj) AS separate_energy_fj,
        sum(latency_fs) AS latency_fs,
        sum(separate_latency_fs) AS separate_latency_fs,
        sum(dram_bytes ORDER BY operator_index) AS dram_bytes,
        sum(separate_dram_bytes ORDER BY operator_index) AS separate_dram_bytes,
        sum(moved_bytes ORDER BY operator_index) AS moved_bytes,
        sum(separate_moved_bytes ORDER BY operator_index) AS separate_moved_bytes,
        sum(pass_bytes ORDER BY operator_index) AS pass_bytes,
        sum(separate_pass_bytes ORDER BY operator_index) AS separate_pass_bytes
    FROM beside
    GROUP BY own_pattern, own_subgraph_index, own_operator_index
),
shared AS (
    SELECT
        p.*,
        sum(energy_fj) OVER () AS run_energy_fj,
        sum(latency_fs) OVER () AS run_latency_fs,
        sum(separate_energy_fj) OVER () AS run_separate_energy_fj,
        sum(separate_latency_fs) OVER () AS run_separate_latency_fs
    FROM part AS p
)
SELECT
    s.own_subgraph_index AS subgraph_index,
    s.own_operator_index AS operator_index,
    s.name, s.kind, s.operations, s.fusion_pattern, s.subgraph_count, s.operator_count, s.folded_count,
    s.folded_count > 0 AS is_folded,
    s.biased_count, s.bias_addition_count, s.bias_element_count, s.kernel_count, s.separate_kernel_count, s.energy_fj,
    s.separate_energy_fj, s.latency_fs, s.separate_latency_fs, s.dram_bytes, s.separate_dram_bytes, s.moved_bytes,
    s.separate_moved_bytes, s.pass_bytes, s.separate_pass_bytes,
    edp_share(s.energy_fj, s.latency_fs, s.run_energy_fj, s.run_latency_fs) AS edp_share_js,
    edp_share(s.separate_energy_fj, s.separate_latency_fs, s.run_separate_energy_fj, s.run_separate_latency_fs)
        AS separate_edp_share_js,
    joules(s.energy_fj) AS energy_j,
    joules(s.separate_energy_fj) AS separate_energy_j,
    s.separate_energy_fj - s.energy_fj AS saved_energy_fj,
    joules(s.separate_energy_fj - s.energy_fj) AS saved_energy_j,
    fraction(s.separate_energy_fj - s.energy_fj, s.separate_energy_fj) AS saved_energy_fraction,
    seconds(s.latency_fs) AS latency_s,
    seconds(s.separate_latency_fs) AS separate_latency_s,
    s.separate_latency_fs - s.latency_fs AS saved_latency_fs,
    seconds(s.separate_latency_fs - s.latency_fs) AS saved_latency_s,
    fraction(s.separate_latency_fs - s.latency_fs, s.separate_latency_fs) AS saved_latency_fraction,
    edp_share(
        s.separate_energy_fj - s.energy_fj,
        s.separate_latency_fs - s.latency_fs,
        s.run_separate_energy_fj + s.run_energy_fj,
        s.run_separate_latency_fs + s.run_latency_fs
    ) AS saved_edp_share_js,
    saved_edp_share_js / nullif(joules(s.run_separate_energy_fj) * seconds(s.run_separate_latency_fs), 0e0)
        AS saved_edp_fraction,
    s.separate_dram_bytes - s.dram_bytes AS saved_dram_bytes,
    1e0 - s.dram_bytes / nullif(s.separate_dram_bytes, 0e0) AS saved_dram_fraction,
    s.separate_moved_bytes - s.moved_bytes AS saved_moved_bytes,
    1e0 - s.moved_bytes / nullif(s.separate_moved_bytes, 0e0) AS saved_moved_fraction
FROM shared AS s
ORDER BY saved_edp_share_js DESC, s.own_subgraph_index, s.own_operator_index, s.fusion_pattern
