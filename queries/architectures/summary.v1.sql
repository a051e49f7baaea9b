/*
name = "architectures.summary"
record = "ArchitectureSummary"
version = 1
schema = 1
summary = "What each architecture spends a model's joules on: energy by common category, of the run and of one MAC, and what a MAC takes"
grain = "one row per run asked for, refused ones included with null figures"
order = ["position in run_ids", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one model, one of each architecture" }
[columns]
architecture = { type = "VARCHAR", meaning = "architecture class" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
model = { type = "VARCHAR", meaning = "model" }
batch = { type = "INTEGER", meaning = "samples in one input" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
energy_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "per batch, exact: the sum of the eight below" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per batch" }
mac_count = { type = "BIGINT", null = true, meaning = "multiply-accumulates" }
energy_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of one MAC with all that happens around it; null without MACs" }
dynamic_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "the same without static energy" }
compute_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "arithmetic, of MACs and of all other operations, exact" }
register_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "registers, exact" }
on_chip_memory_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "caches and scratchpads, of a unit or of the chip, exact" }
interconnect_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "wires and switches between units and memories, exact" }
off_chip_memory_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "off-chip memory and its controller, exact" }
control_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "instructions, tokens, configuration, scheduling, exact" }
board_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "voltage regulators, and what the power limit says beyond all prices, exact" }
static_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "static power x the time from one batch to the next, exact" }
compute_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
register_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
on_chip_memory_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
interconnect_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
off_chip_memory_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
control_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
board_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
static_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
compute_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
register_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
on_chip_memory_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
interconnect_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
off_chip_memory_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
control_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
board_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
static_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model" }
overhead_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "architectural overhead, exact: neither arithmetic nor off-chip memory nor board nor static" }
overhead_fraction = { type = "DOUBLE", null = true, meaning = "of the energy" }
overhead_ratio = { type = "DOUBLE", null = true, meaning = "architectural overhead over the energy of arithmetic" }
order_name = { type = "VARCHAR", null = true, meaning = "what tells a unit what to do: an instruction, a token, a read of a configuration" }
order_count = { type = "DOUBLE", null = true, meaning = "how many of those" }
macs_per_order = { type = "DOUBLE", null = true, meaning = "MACs for each of them; null where there is none" }
unit_memory_bytes_per_mac = { type = "DOUBLE", null = true, unit = "B", meaning = "read and written in memories of one unit" }
chip_memory_bytes_per_mac = { type = "DOUBLE", null = true, unit = "B", meaning = "read and written in memories that all units share" }
off_chip_bytes_per_mac = { type = "DOUBLE", null = true, unit = "B", meaning = "read and written off chip" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state, of the precision" }
compute_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that arithmetic bounds" }
memory_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that memory bounds" }
launch_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that the fixed cost of kernels bounds" }
units_used_count = { type = "INTEGER", null = true, meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", null = true, meaning = "units that have this precision" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
static_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "drawn whatever is computed" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
process_node_nm = { type = "DOUBLE", null = true, unit = "nm", meaning = "of the chip: energies per action differ by it too" }
clock_fraction = { type = "DOUBLE", null = true, meaning = "of the full clock; below 1 where the power cap gives way" }
assumed_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy whose price per action is an assumption" }
recalled_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy whose price is a public number not checked at its source" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH order_action (architecture, component, action, order_name) AS (
    VALUES
        ('cpu', 'instruction_cache', 'fetch', 'instruction'),
        ('gpu', 'instruction_cache', 'fetch', 'warp instruction'),
        ('tpu', 'vliw_bundle', 'fetch', 'VLIW bundle'),
        ('dsp', 'vliw_packet', 'fetch', 'VLIW packet'),
        ('npu', 'instruction', 'fetch', 'instruction'),
        ('dpu', 'instruction', 'fetch', 'instruction'),
        ('kpu', 'token', 'dispatch', 'token'),
        ('cgra', 'functional_unit', 'configuration_read', 'configuration read')
),
priced AS (
    SELECT
        t.run_id,
        a.common_category,
        a.per,
        t.energy_fj,
        CAST(t.action_count AS DECIMAL(38, 6)) AS action_count,
        e.basis,
        o.order_name,
        CASE WHEN o.order_name IS NOT NULL THEN CAST(t.action_count AS DECIMAL(38, 6)) END AS order_count
    FROM run_action AS t
    JOIN run AS r ON r.run_id = t.run_id
    JOIN action AS a ON a.action_id = t.action_id
    LEFT JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = t.action_id
    LEFT JOIN order_action AS o
        ON o.architecture = a.architecture AND o.component = a.component AND o.action = a.action
    WHERE t.run_id IN (SELECT unnest($run_ids))
),
spent AS (
    SELECT
        run_id,
        sum(energy_fj) AS energy_fj,
        sum(CASE WHEN common_category = 'compute' THEN energy_fj ELSE 0 END) AS compute_fj,
        sum(CASE WHEN common_category = 'register' THEN energy_fj ELSE 0 END) AS register_fj,
        sum(CASE WHEN common_category IN ('unit_memory', 'chip_memory') THEN energy_fj ELSE 0 END) AS on_chip_memory_fj,
        sum(CASE WHEN common_category = 'interconnect' THEN energy_fj ELSE 0 END) AS interconnect_fj,
        sum(CASE WHEN common_category = 'off_chip_memory' THEN energy_fj ELSE 0 END) AS off_chip_memory_fj,
        sum(CASE WHEN common_category = 'control' THEN energy_fj ELSE 0 END) AS control_fj,
        sum(CASE WHEN common_category = 'board' THEN energy_fj ELSE 0 END) AS board_fj,
        sum(CASE WHEN common_category = 'static' THEN energy_fj ELSE 0 END) AS static_fj,
        sum_overhead(common_category, energy_fj) AS overhead_fj,
        sum(CASE WHEN basis = 'assumed' THEN energy_fj ELSE 0 END) AS assumed_fj,
        sum(CASE WHEN basis = 'recalled' THEN energy_fj ELSE 0 END) AS recalled_fj,
        CAST(sum(CASE WHEN common_category = 'unit_memory' AND per = 'B' THEN action_count ELSE 0 END) AS DOUBLE)
            AS unit_memory_bytes,
        CAST(sum(CASE WHEN common_category = 'chip_memory' AND per = 'B' THEN action_count ELSE 0 END) AS DOUBLE)
            AS chip_memory_bytes,
        max(order_name) AS order_name,
        CAST(sum(order_count) AS DOUBLE) AS order_count
    FROM priced
    GROUP BY run_id
),
allocation AS (
    SELECT
        run_id,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs,
        CAST(sum(CASE WHEN bottleneck = 'compute' THEN latency_fs ELSE 0 END) AS DOUBLE) AS compute_fs,
        CAST(sum(CASE WHEN bottleneck = 'memory' THEN latency_fs ELSE 0 END) AS DOUBLE) AS memory_fs,
        CAST(sum(CASE WHEN bottleneck = 'launch' THEN latency_fs ELSE 0 END) AS DOUBLE) AS launch_fs,
        CAST(sum(CAST(dram_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS dram_bytes
    FROM run_subgraph
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id
),
answered AS (
    SELECT
        run_id, latency_s, energy_j, nullif(mac_count, 0) AS mac_count, compute_utilization_fraction, units_used_count,
        average_power_w
    FROM runs
    WHERE run_id IN (SELECT unnest($run_ids))
),
fact AS (
    SELECT
        hardware_digest,
        max(value) FILTER (WHERE quantity = 'static_power') AS static_power_w,
        max(value) FILTER (WHERE quantity = 'process_node') AS process_node_nm
    FROM hardware_fact
    WHERE quantity IN ('static_power', 'process_node')
    GROUP BY hardware_digest
)
SELECT
    r.architecture,
    r.configured_hardware AS hardware,
    CASE WHEN r.refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    r.model,
    r.batch,
    r.precision_label AS "precision",
    r.runtime,
    s.latency_s,
    e.energy_fj,
    s.energy_j,
    coalesce(s.mac_count, CASE WHEN e.energy_fj IS NOT NULL THEN 0 END) AS mac_count,
    s.energy_j / s.mac_count AS energy_per_mac_j,
    joules(e.energy_fj - e.static_fj) / s.mac_count AS dynamic_per_mac_j,
    e.compute_fj,
    e.register_fj,
    e.on_chip_memory_fj,
    e.interconnect_fj,
    e.off_chip_memory_fj,
    e.control_fj,
    e.board_fj,
    e.static_fj,
    fraction(e.compute_fj, e.energy_fj) AS compute_fraction,
    fraction(e.register_fj, e.energy_fj) AS register_fraction,
    fraction(e.on_chip_memory_fj, e.energy_fj) AS on_chip_memory_fraction,
    fraction(e.interconnect_fj, e.energy_fj) AS interconnect_fraction,
    fraction(e.off_chip_memory_fj, e.energy_fj) AS off_chip_memory_fraction,
    fraction(e.control_fj, e.energy_fj) AS control_fraction,
    fraction(e.board_fj, e.energy_fj) AS board_fraction,
    fraction(e.static_fj, e.energy_fj) AS static_fraction,
    joules(e.compute_fj) / s.mac_count AS compute_per_mac_j,
    joules(e.register_fj) / s.mac_count AS register_per_mac_j,
    joules(e.on_chip_memory_fj) / s.mac_count AS on_chip_memory_per_mac_j,
    joules(e.interconnect_fj) / s.mac_count AS interconnect_per_mac_j,
    joules(e.off_chip_memory_fj) / s.mac_count AS off_chip_memory_per_mac_j,
    joules(e.control_fj) / s.mac_count AS control_per_mac_j,
    joules(e.board_fj) / s.mac_count AS board_per_mac_j,
    joules(e.static_fj) / s.mac_count AS static_per_mac_j,
    e.overhead_fj,
    fraction(e.overhead_fj, e.energy_fj) AS overhead_fraction,
    fraction(e.overhead_fj, e.compute_fj) AS overhead_ratio,
    e.order_name,
    e.order_count,
    s.mac_count / nullif(e.order_count, 0e0) AS macs_per_order,
    e.unit_memory_bytes / s.mac_count AS unit_memory_bytes_per_mac,
    e.chip_memory_bytes / s.mac_count AS chip_memory_bytes_per_mac,
    a.dram_bytes / s.mac_count AS off_chip_bytes_per_mac,
    s.compute_utilization_fraction,
    a.compute_fs / a.latency_fs AS compute_time_fraction,
    a.memory_fs / a.latency_fs AS memory_time_fraction,
    a.launch_fs / a.latency_fs AS launch_time_fraction,
    s.units_used_count,
    r.units_total_count,
    r.unit_name,
    f.static_power_w,
    s.average_power_w,
    f.process_node_nm,
    r.clock_fraction,
    fraction(e.assumed_fj, e.energy_fj) AS assumed_fraction,
    fraction(e.recalled_fj, e.energy_fj) AS recalled_fraction,
    r.is_projection,
    r.is_available,
    coalesce(r.refusal, '') AS reason,
    r.run_id
FROM run_configurations AS r
LEFT JOIN answered AS s ON s.run_id = r.run_id
LEFT JOIN spent AS e ON e.run_id = r.run_id
LEFT JOIN allocation AS a ON a.run_id = r.run_id
LEFT JOIN fact AS f ON f.hardware_digest = r.hardware_digest
WHERE r.run_id IN (SELECT unnest($run_ids))
ORDER BY list_position($run_ids, r.run_id), r.run_id
