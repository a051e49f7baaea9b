/*
summary = "Subgraphs or operators of runs: energy by part, time, bottleneck, bytes, allocation, shares"
grain = "one row per evaluated run and subgraph, or operator, that runs; energies and latencies sum to the run, exactly"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one workload or of up to 32; refused ones are omitted" }
division = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
energy = { type = "VARCHAR", default = "parts", meaning = "ledger to read: parts; whole, so that parts are 0; none, so that all energies are 0" }
[columns]
is_available = { type = "BOOLEAN", meaning = "true if the hardware can be bought or rented at a known price" }
part_index = { type = "INTEGER", meaning = "number of the subgraph or operator" }
subgraph_index = { type = "INTEGER", meaning = "number of the subgraph, in the order of first operators" }
operator_index = { type = "INTEGER", of = "operator", meaning = "execution order" }
name = { type = "VARCHAR", meaning = "name of the operator: module path, with the operation where the module holds several; for a subgraph, that of its leading operator" }
subgraph = { type = "VARCHAR", meaning = "name of the operator that leads the subgraph" }
operation = { type = "VARCHAR", meaning = "operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
kind = { type = "VARCHAR", of = "operator", meaning = "kind of operator" }
module_path = { type = "VARCHAR", of = "operator", meaning = "module that calls it; empty for the model itself" }
aten = { type = "VARCHAR", of = "operator", meaning = "dispatched ATen operator" }
output_shape = { type = "VARCHAR", of = "operator", meaning = "shape of the output, e.g. 1x64x56x56" }
fusion_pattern = { type = "VARCHAR", meaning = "operations of the subgraph, in order" }
is_merged = { type = "BOOLEAN", meaning = "true if its subgraph is one kernel" }
is_fused = { type = "BOOLEAN", meaning = "true if it shares its kernel with other operators" }
operator_count = { type = "BIGINT", meaning = "operators of the subgraph that run" }
kernel_index = { type = "INTEGER", of = "operator", meaning = "order of the kernel: the last operator of a subgraph that is one kernel, else the operator" }
kernel_count = { type = "INTEGER", meaning = "kernels launched; for an operator, 1 where it leads a kernel, else 0" }
bias_addition_count = { type = "BIGINT", of = "operator", meaning = "additions of its bias; 0 without one" }
bias_element_count = { type = "BIGINT", of = "operator", meaning = "elements of its bias" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy, exact" }
compute_fj = { type = "HUGEINT", of = "parts", unit = "fJ", meaning = "energy of arithmetic and its registers, exact" }
memory_fj = { type = "HUGEINT", of = "parts", unit = "fJ", meaning = "energy of moving and storing data, exact" }
control_fj = { type = "HUGEINT", of = "parts", unit = "fJ", meaning = "energy of control and of regulator losses, exact" }
static_fj = { type = "HUGEINT", of = "parts", unit = "fJ", meaning = "static power x time between batches, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy, static energy included" }
compute_energy_j = { type = "DOUBLE", of = "parts", unit = "J", meaning = "energy of arithmetic and its registers" }
memory_energy_j = { type = "DOUBLE", of = "parts", unit = "J", meaning = "energy of moving and storing data" }
control_energy_j = { type = "DOUBLE", of = "parts", unit = "J", meaning = "energy of control and of regulator losses" }
static_energy_j = { type = "DOUBLE", of = "parts", unit = "J", meaning = "static power x time between batches" }
energy_fraction = { type = "DOUBLE", meaning = "share of the run's energy" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "latency, exact" }
run_fs = { type = "HUGEINT", unit = "fs", meaning = "latency of the run, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency of its kernels; of an operator its share of its kernel's" }
latency_fraction = { type = "DOUBLE", meaning = "share of the run's latency" }
launch_fraction = { type = "DOUBLE", meaning = "share of its latency that is the fixed cost of kernels" }
is_computing = { type = "BOOLEAN", meaning = "true if the rest of its latency, without passes, is bound by units, not by memory" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E_i t_i, its own energy x its own latency; not additive" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; sums to E T" }
edp_share_fraction = { type = "DOUBLE", meaning = "(E_i / E + t_i / T) / 2: its share of the run's energy-delay product" }
rank = { type = "BIGINT", meaning = "rank by share of the run's energy-delay product, 1 for the largest" }
cumulative_fraction = { type = "DOUBLE", meaning = "sum of this share and all larger ones; 1 in the last row" }
compute_share_fraction = { type = "DOUBLE", of = "parts", meaning = "part of edp_share_fraction due to arithmetic: half its energy over E, half its time over T; an operator's time is split as its subgraph's" }
memory_share_fraction = { type = "DOUBLE", of = "parts", meaning = "part of edp_share_fraction due to data movement" }
control_share_fraction = { type = "DOUBLE", of = "parts", meaning = "part of edp_share_fraction due to control, whose time is the fixed cost of kernels" }
static_share_fraction = { type = "DOUBLE", of = "parts", meaning = "part of edp_share_fraction due to static energy, which has no time of its own" }
halving_fraction = { type = "DOUBLE", meaning = "share of E T that halving its energy and time would save" }
bottleneck = { type = "VARCHAR", meaning = "largest of compute, memory (passes included) and launch time of its subgraph" }
compute_s = { type = "DOUBLE", unit = "s", meaning = "time of the units of its subgraph, padded tiles and partial waves included" }
memory_s = { type = "DOUBLE", unit = "s", meaning = "time of the slowest memory level of its subgraph" }
launch_s = { type = "DOUBLE", unit = "s", meaning = "fixed cost of the kernels of its subgraph" }
pass_s = { type = "DOUBLE", unit = "s", meaning = "memory time of passes that the runtime adds to its subgraph" }
pass_fraction = { type = "DOUBLE", meaning = "share of its latency that passes take" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes read and written off chip" }
moved_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes across the boundaries of its kernels; for an operator, its part of them" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes read and written again by passes that the runtime adds, and by kernels that move more than their operands" }
unit_name = { type = "VARCHAR", meaning = "name of the units that do the work of its subgraph: the hardware's main units, or others that take the remaining work" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave of its subgraph" }
units_total_count = { type = "INTEGER", meaning = "units available at this precision" }
tile_count = { type = "DOUBLE", of = "subgraph", meaning = "tiles of work" }
wave_count = { type = "DOUBLE", of = "subgraph", meaning = "rounds of tiles over the units" }
wave_fill_fraction = { type = "DOUBLE", of = "subgraph", null = true, meaning = "tiles over waves x units; null without tiles" }
executed_mac_count = { type = "DOUBLE", of = "subgraph", meaning = "MAC slots of its tiles, padding included" }
padding_fraction = { type = "DOUBLE", of = "subgraph", null = true, meaning = "share of executed_mac_count without a MAC" }
computed_mac_count = { type = "BIGINT", of = "subgraph", meaning = "MACs that the units compute" }
compute_utilization_fraction = { type = "DOUBLE", of = "subgraph", null = true, meaning = "operations computed over those that the peak allows within its latency" }
bandwidth_utilization_fraction = { type = "DOUBLE", of = "subgraph", null = true, meaning = "attained over published off-chip bandwidth, within its latency, or within its memory time if a shared kernel hides part of that time" }
dram_intensity_ops_per_byte = { type = "DOUBLE", unit = "ops/B", of = "subgraph", null = true, meaning = "operations computed over bytes moved off chip; null where there are no bytes" }
attained_ops_per_s = { type = "DOUBLE", unit = "ops/s", of = "subgraph", meaning = "operations computed, two per MAC, over its latency; 0 without MACs" }
roofline_ops_per_s = { type = "DOUBLE", unit = "ops/s", of = "subgraph", meaning = "roofline limit: the lesser of the peak and intensity x bandwidth" }
roofline_fraction = { type = "DOUBLE", of = "subgraph", null = true, meaning = "attained operations per second over the roofline limit; null without MACs" }
ridge_ops_per_byte = { type = "DOUBLE", unit = "ops/B", meaning = "ridge point: peak over off-chip bandwidth" }
peak_ops_per_s = { type = "DOUBLE", unit = "ops/s", meaning = "dense peak of the hardware at the precision of the run" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", unit = "B/s", meaning = "bandwidth of the off-chip memory, as published" }
separate_energy_j = { type = "DOUBLE", unit = "J", of = "operator", meaning = "energy as a kernel of its own, static energy included" }
separate_latency_s = { type = "DOUBLE", unit = "s", of = "operator", meaning = "latency as a kernel of its own" }
saved_energy_j = { type = "DOUBLE", unit = "J", of = "operator", null = true, meaning = "saving by fusion: separate minus own; null where it is not fused" }
saved_latency_s = { type = "DOUBLE", unit = "s", of = "operator", null = true, meaning = "saving by fusion: separate minus own; null where it is not fused" }
*/
WITH asked AS MATERIALIZED (
    SELECT
        r.run_id,
        r.workload_id,
        list_position($run_ids, r.run_id) AS position,
        model,
        configured_hardware AS hardware,
        is_available,
        is_merging(runtime) AS is_merged,
        unit_name,
        units_total_count,
        peak_ops_per_s,
        memory_bandwidth_bytes_per_s,
        t.energy_fj AS run_fj,
        t.latency_fs AS run_fs
    FROM run_configurations AS r
    JOIN internal.run_total AS t ON t.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest($run_ids)) AND refusal IS NULL
        AND CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM internal.run WHERE run_id IN (SELECT unnest($run_ids))) > 32
                THEN error('the runs are of more than 32 workloads; ask about fewer models or batches at once')
            WHEN $division NOT IN ('subgraph', 'operator')
                THEN error('division is ' || $division || ', expected subgraph or operator')
            ELSE TRUE
        END
),
-- subgraphs without work for the main units: name of the units that do the work
other AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        u.unit_name,
        CASE WHEN u.position IS NOT NULL THEN CAST(coalesce(f.value, 1e0) AS INTEGER) END AS unit_count
    FROM internal.run_subgraph AS s
    JOIN (
        SELECT l.run_id, l.subgraph_index, max(u.position) AS position
        FROM (
            SELECT run_id, subgraph_index, action_id
            FROM internal.ledger_line
            WHERE run_id IN (SELECT unnest($run_ids))
            GROUP BY ALL
        ) AS l
        JOIN internal.action AS a ON a.action_id = l.action_id
        LEFT JOIN other_units AS u ON u.component = a.component
        GROUP BY l.run_id, l.subgraph_index
    ) AS o ON o.run_id = s.run_id AND o.subgraph_index = s.subgraph_index
    JOIN internal.run AS r ON r.run_id = s.run_id
    LEFT JOIN other_units AS u ON u.position = o.position
    LEFT JOIN internal.hardware_fact AS f ON f.hardware_digest = r.hardware_digest AND f.quantity = u.quantity
    WHERE s.run_id IN (SELECT unnest($run_ids)) AND s.units_used_count = 0
),
spent AS (
    SELECT
        l.run_id,
        l.part_index,
        sum(l.energy_fj) AS energy_fj,
        sum(CASE WHEN a.part = 'compute' THEN l.energy_fj ELSE 0 END) AS compute_fj,
        sum(CASE WHEN a.part = 'memory' THEN l.energy_fj ELSE 0 END) AS memory_fj,
        sum(CASE WHEN a.part = 'control' THEN l.energy_fj ELSE 0 END) AS control_fj,
        sum(CASE WHEN a.part = 'static' THEN l.energy_fj ELSE 0 END) AS static_fj
    FROM (
        SELECT
            run_id,
            CASE WHEN $division = 'operator' THEN operator_index ELSE subgraph_index END AS part_index,
            action_id,
            sum(energy_fj) AS energy_fj
        FROM internal.ledger_line
        WHERE $energy = 'parts' AND run_id IN (SELECT unnest($run_ids))
        GROUP BY ALL
    ) AS l
    JOIN internal.action AS a ON a.action_id = l.action_id
    GROUP BY l.run_id, l.part_index
    UNION ALL BY NAME
    SELECT
        run_id,
        CASE WHEN $division = 'operator' THEN operator_index ELSE subgraph_index END AS part_index,
        sum(energy_fj) AS energy_fj
    FROM internal.ledger_line
    WHERE $energy = 'whole' AND run_id IN (SELECT unnest($run_ids))
    GROUP BY ALL
),
work AS (
    SELECT
        o.run_id,
        o.subgraph_index,
        count(*) AS operator_count,
        CAST(sum(q.mac_count) AS BIGINT) AS mac_count
    FROM internal.run_operator AS o
    JOIN asked AS r ON r.run_id = o.run_id
    JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    WHERE o.run_id IN (SELECT unnest($run_ids)) AND $division <> 'operator'
    GROUP BY o.run_id, o.subgraph_index
),
placed AS (
    SELECT
        s.run_id,
        s.subgraph_index AS part_index,
        s.subgraph_index,
        g.name,
        split_part(g.pattern, '+', 1) AS operation,
        g.name AS subgraph,
        g.pattern,
        w.operator_count,
        s.kernel_count,
        w.mac_count,
        s.latency_fs,
        s.dram_bytes,
        s.moved_bytes,
        s.pass_bytes,
        s.tile_count,
        s.wave_count,
        s.executed_mac_count,
        s.computed_mac_count,
        s.latency_fs AS kernel_fs,
        s.bottleneck,
        s.compute_s,
        s.memory_s,
        s.launch_s,
        s.pass_s,
        s.units_used_count
    FROM internal.run_subgraph AS s
    JOIN asked AS r ON r.run_id = s.run_id
    JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
    JOIN work AS w ON w.run_id = s.run_id AND w.subgraph_index = s.subgraph_index
    WHERE s.run_id IN (SELECT unnest($run_ids)) AND $division <> 'operator'
    UNION ALL BY NAME
    SELECT
        o.run_id,
        o.operator_index AS part_index,
        o.operator_index,
        o.subgraph_index,
        q.name,
        q.operation,
        g.name AS subgraph,
        g.pattern,
        q.kind,
        q.module_path,
        q.aten,
        q.output_shape,
        count(*) OVER (PARTITION BY o.run_id, o.subgraph_index) AS operator_count,
        max(o.operator_index) OVER (PARTITION BY o.run_id, o.subgraph_index) AS last_index,
        o.kernel_count,
        q.mac_count,
        q.bias_addition_count,
        q.bias_element_count,
        o.latency_fs,
        o.dram_bytes,
        o.moved_bytes,
        o.pass_bytes,
        o.separate_energy_fj,
        o.separate_latency_fs,
        s.latency_fs AS kernel_fs,
        s.bottleneck,
        s.compute_s,
        s.memory_s,
        s.launch_s,
        s.pass_s,
        s.units_used_count
    FROM internal.run_operator AS o
    JOIN asked AS r ON r.run_id = o.run_id
    JOIN counted_operators AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = o.subgraph_index
    JOIN internal.run_subgraph AS s ON s.run_id = o.run_id AND s.subgraph_index = o.subgraph_index
    WHERE o.run_id IN (SELECT unnest($run_ids)) AND s.run_id IN (SELECT unnest($run_ids)) AND $division = 'operator'
),
figure AS (
    SELECT
        p.*,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(e.compute_fj, 0) AS compute_fj,
        coalesce(e.memory_fj, 0) AS memory_fj,
        coalesce(e.control_fj, 0) AS control_fj,
        coalesce(e.static_fj, 0) AS static_fj,
        r.run_fj,
        r.run_fs,
        fraction(coalesce(e.energy_fj, 0), r.run_fj) AS energy_fraction,
        fraction(p.latency_fs, r.run_fs) AS latency_fraction,
        2 * p.computed_mac_count / nullif(p.dram_bytes, 0e0) AS dram_intensity_ops_per_byte,
        least(
            r.peak_ops_per_s,
            coalesce(2 * p.computed_mac_count / nullif(p.dram_bytes, 0e0) * r.memory_bandwidth_bytes_per_s, 'inf')
        ) AS roofline_ops_per_s,
        coalesce(fraction(least(p.kernel_fs, CAST(round(p.launch_s * 1e15) AS BIGINT)), p.kernel_fs), 0e0)
            AS launch_fraction,
        coalesce(
            fraction(
                least(
                    p.kernel_fs - least(p.kernel_fs, CAST(round(p.launch_s * 1e15) AS BIGINT)),
                    CAST(round(p.pass_s * 1e15) AS BIGINT)
                ),
                p.kernel_fs
            ),
            0e0
        ) AS pass_fraction
    FROM placed AS p
    JOIN asked AS r ON r.run_id = p.run_id
    LEFT JOIN spent AS e ON e.run_id = p.run_id AND e.part_index = p.part_index
)
SELECT
    f.run_id,
    r.position,
    r.workload_id,
    r.model,
    r.hardware,
    r.is_available,
    f.part_index, f.subgraph_index, f.operator_index, f.name, f.subgraph, f.operation, f.kind, f.module_path, f.aten,
    f.output_shape,
    f.pattern AS fusion_pattern,
    r.is_merged,
    r.is_merged AND f.operator_count > 1 AS is_fused,
    f.operator_count,
    CASE WHEN r.is_merged THEN f.last_index ELSE f.operator_index END AS kernel_index,
    f.kernel_count, f.mac_count, f.bias_addition_count, f.bias_element_count, f.energy_fj, f.compute_fj, f.memory_fj,
    f.control_fj, f.static_fj, f.run_fj,
    joules(f.energy_fj) AS energy_j,
    joules(f.compute_fj) AS compute_energy_j,
    joules(f.memory_fj) AS memory_energy_j,
    joules(f.control_fj) AS control_energy_j,
    joules(f.static_fj) AS static_energy_j,
    f.energy_fraction, f.latency_fs, f.run_fs,
    seconds(f.latency_fs) AS latency_s,
    f.latency_fraction, f.launch_fraction, f.pass_fraction,
    f.compute_s >= f.memory_s AS is_computing,
    joules(f.energy_fj) * seconds(f.latency_fs) AS edp_js,
    edp_share(f.energy_fj, f.latency_fs, f.run_fj, f.run_fs) AS edp_share_js,
    (f.energy_fraction + f.latency_fraction) / 2e0 AS edp_share_fraction,
    row_number() OVER by_share AS rank,
    (
        fraction(sum(f.energy_fj) OVER by_share, f.run_fj) + fraction(sum(f.latency_fs) OVER by_share, f.run_fs)
    ) / 2e0 AS cumulative_fraction,
    (
        fraction(f.compute_fj, f.run_fj)
        + CASE
            WHEN f.compute_s >= f.memory_s THEN f.latency_fraction * (1e0 - f.launch_fraction - f.pass_fraction)
            ELSE 0e0
        END
    ) / 2e0 AS compute_share_fraction,
    (
        fraction(f.memory_fj, f.run_fj)
        + f.latency_fraction
        * CASE WHEN f.compute_s >= f.memory_s THEN f.pass_fraction ELSE 1e0 - f.launch_fraction END
    ) / 2e0 AS memory_share_fraction,
    (fraction(f.control_fj, f.run_fj) + f.latency_fraction * f.launch_fraction) / 2e0 AS control_share_fraction,
    fraction(f.static_fj, f.run_fj) / 2e0 AS static_share_fraction,
    (f.energy_fraction + f.latency_fraction) / 2e0 - f.energy_fraction * f.latency_fraction / 4e0 AS halving_fraction,
    f.bottleneck, f.compute_s, f.memory_s, f.launch_s, f.pass_s, f.dram_bytes, f.moved_bytes, f.pass_bytes,
    coalesce(u.unit_name, r.unit_name) AS unit_name,
    coalesce(u.unit_count, f.units_used_count) AS units_used_count,
    coalesce(u.unit_count, r.units_total_count) AS units_total_count,
    f.tile_count, f.wave_count,
    f.tile_count / nullif(f.wave_count * r.units_total_count, 0e0) AS wave_fill_fraction,
    f.executed_mac_count,
    1e0 - f.mac_count / nullif(f.executed_mac_count, 0e0) AS padding_fraction,
    f.computed_mac_count,
    utilization_of(f.computed_mac_count, f.latency_fs, r.peak_ops_per_s) AS compute_utilization_fraction,
    at_most_whole(f.dram_bytes / nullif(greatest(seconds(f.latency_fs), f.memory_s), 0e0) / r.memory_bandwidth_bytes_per_s)
        AS bandwidth_utilization_fraction,
    f.dram_intensity_ops_per_byte,
    2 * f.computed_mac_count / coalesce(nullif(seconds(f.latency_fs), 0e0), 'inf') AS attained_ops_per_s,
    CASE WHEN f.computed_mac_count IS NOT NULL THEN f.roofline_ops_per_s END AS roofline_ops_per_s,
    utilization_of(f.computed_mac_count, f.latency_fs, nullif(f.roofline_ops_per_s, 0e0)) AS roofline_fraction,
    r.peak_ops_per_s / r.memory_bandwidth_bytes_per_s AS ridge_ops_per_byte,
    r.peak_ops_per_s,
    r.memory_bandwidth_bytes_per_s,
    joules(f.separate_energy_fj) AS separate_energy_j,
    seconds(f.separate_latency_fs) AS separate_latency_s,
    CASE WHEN r.is_merged AND f.operator_count > 1 THEN joules(f.separate_energy_fj) - joules(f.energy_fj) END
        AS saved_energy_j,
    CASE WHEN r.is_merged AND f.operator_count > 1 THEN seconds(f.separate_latency_fs) - seconds(f.latency_fs) END
        AS saved_latency_s
FROM figure AS f
JOIN asked AS r ON r.run_id = f.run_id
LEFT JOIN other AS u ON u.run_id = f.run_id AND u.subgraph_index = f.subgraph_index
WINDOW by_share AS (
    PARTITION BY f.run_id ORDER BY f.energy_fraction + f.latency_fraction DESC, f.part_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)
ORDER BY position, f.run_id, f.part_index
