/*
record = "ArchitectureSummary"
summary = "Energy of the run and of one MAC on each architecture by common category, with event counts per MAC"
grain = "one row per requested run; refused ones have null figures"
table = [
    "compute_fraction.kept", 'register_fraction.headed("registers").kept',
    'on_chip_memory_fraction.headed("on-chip memory").kept', 'interconnect_fraction.headed("network").kept',
    "off_chip_memory_fraction.kept", "control_fraction.kept", "board_fraction.kept", "unattributed_fraction.kept",
    "static_fraction.kept", "overhead_fraction.kept",
]
order = ["position in run_ids", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one model, one of each architecture" }
[columns]
energy_per_mac_j = { heading = "energy per MAC", type = "DOUBLE", null = true, unit = "J", meaning = "energy of the run over its MACs; null without MACs" }
dynamic_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of the run without static energy, over its MACs" }
compute_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of arithmetic (MACs and all other operations), exact" }
register_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of registers, exact" }
on_chip_memory_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of caches and scratchpads, of a unit or of the chip, exact" }
interconnect_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of wires and switches between units and memories, and of links between devices, exact" }
off_chip_memory_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of off-chip memory and its controller, exact" }
control_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of instructions, tokens, configuration and scheduling, exact" }
board_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy of voltage regulators and of an included host, exact" }
unattributed_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "energy that no counted action explains, exact" }
static_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "static power x time between batches, exact" }
compute_fraction = { heading = "computing", type = "DOUBLE", null = true, meaning = "share of compute in the energy of the run" }
register_fraction = { type = "DOUBLE", null = true, meaning = "share of registers in the energy of the run" }
on_chip_memory_fraction = { type = "DOUBLE", null = true, meaning = "share of on-chip memory in the energy of the run" }
interconnect_fraction = { type = "DOUBLE", null = true, meaning = "share of interconnect in the energy of the run" }
off_chip_memory_fraction = { heading = "off-chip memory", type = "DOUBLE", null = true, meaning = "share of off-chip memory in the energy of the run" }
control_fraction = { heading = "control", type = "DOUBLE", null = true, meaning = "share of control in the energy of the run" }
board_fraction = { heading = "board losses", type = "DOUBLE", null = true, meaning = "share of the board in the energy of the run" }
unattributed_fraction = { heading = "unattributed energy", type = "DOUBLE", null = true, meaning = "share of unattributed energy in the energy of the run" }
static_fraction = { heading = "static power", type = "DOUBLE", null = true, meaning = "share of static energy in the energy of the run" }
compute_per_mac_j = { heading = "computing", type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, compute" }
register_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, register" }
on_chip_memory_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, on-chip memory" }
interconnect_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, interconnect" }
off_chip_memory_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, off-chip memory" }
control_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, control" }
board_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, board" }
unattributed_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, unattributed energy" }
static_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model, static" }
overhead_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "architectural overhead, exact: neither arithmetic, off-chip memory, board, unattributed, host nor static" }
overhead_ratio = { type = "DOUBLE", null = true, meaning = "architectural overhead over energy of arithmetic" }
order_name = { heading = "instruction", type = "VARCHAR", null = true, meaning = "event that starts a unit's MACs: an instruction, a token, a read of a configuration" }
order_count = { type = "DOUBLE", null = true, meaning = "number of events of order_name" }
macs_per_order = { heading = "MACs per instruction", shown = "plain", type = "DOUBLE", null = true, meaning = "MACs per event of order_name; null without such an event" }
unit_memory_bytes_per_mac = { heading = "unit memory", type = "DOUBLE", null = true, unit = "B", meaning = "bytes per MAC read and written in memories of one unit" }
chip_memory_bytes_per_mac = { heading = "chip memory", type = "DOUBLE", null = true, unit = "B", meaning = "bytes per MAC read and written in memories shared by all units" }
off_chip_bytes_per_mac = { heading = "off-chip memory", type = "DOUBLE", null = true, unit = "B", meaning = "bytes per MAC read and written off chip" }
compute_utilization_fraction = { heading = "compute utilization" }
overhead_fraction = { heading = "overhead" }
memory_time_fraction = { heading = "memory time" }
architecture = { heading = "class" }
*/
WITH priced AS (
    SELECT
        t.run_id,
        a.common_category,
        a.per,
        t.energy_fj,
        CAST(t.action_count AS DECIMAL(38, 6)) AS action_count,
        nullif(o.step, '') AS order_name,
        CASE WHEN o.step <> '' THEN CAST(t.action_count AS DECIMAL(38, 6)) END AS order_count
    FROM internal.run_action AS t
    JOIN internal.action AS a ON a.action_id = t.action_id
    LEFT JOIN internal.action_role AS o
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
        sum(CASE WHEN common_category IN ('interconnect', 'communication') THEN energy_fj ELSE 0 END)
            AS interconnect_fj,
        sum(CASE WHEN common_category = 'off_chip_memory' THEN energy_fj ELSE 0 END) AS off_chip_memory_fj,
        sum(CASE WHEN common_category = 'control' THEN energy_fj ELSE 0 END) AS control_fj,
        sum(CASE WHEN common_category IN ('board', 'host') THEN energy_fj ELSE 0 END) AS board_fj,
        sum(CASE WHEN common_category = 'unattributed' THEN energy_fj ELSE 0 END) AS unattributed_fj,
        sum(CASE WHEN common_category = 'static' THEN energy_fj ELSE 0 END) AS static_fj,
        sum(CASE WHEN is_overhead(common_category) THEN energy_fj ELSE 0 END) AS overhead_fj,
        CAST(sum(CASE WHEN common_category = 'unit_memory' AND per = 'B' THEN action_count ELSE 0 END) AS DOUBLE)
            AS unit_memory_bytes,
        CAST(sum(CASE WHEN common_category = 'chip_memory' AND per = 'B' THEN action_count ELSE 0 END) AS DOUBLE)
            AS chip_memory_bytes,
        max(order_name) AS order_name,
        CAST(sum(order_count) AS DOUBLE) AS order_count
    FROM priced
    GROUP BY run_id
)
SELECT
    r.architecture, r.hardware, r.status, r.model, r.batch, r.precision, r.runtime, r.latency_s, r.energy_fj,
    r.energy_j, r.mac_count,
    r.energy_j / nullif(r.mac_count, 0) AS energy_per_mac_j,
    joules(e.energy_fj - e.static_fj) / nullif(r.mac_count, 0) AS dynamic_per_mac_j,
    e.compute_fj, e.register_fj, e.on_chip_memory_fj, e.interconnect_fj, e.off_chip_memory_fj, e.control_fj,
    e.board_fj, e.unattributed_fj, e.static_fj,
    fraction(e.compute_fj, r.energy_fj) AS compute_fraction,
    fraction(e.register_fj, r.energy_fj) AS register_fraction,
    fraction(e.on_chip_memory_fj, r.energy_fj) AS on_chip_memory_fraction,
    fraction(e.interconnect_fj, r.energy_fj) AS interconnect_fraction,
    fraction(e.off_chip_memory_fj, r.energy_fj) AS off_chip_memory_fraction,
    fraction(e.control_fj, r.energy_fj) AS control_fraction,
    fraction(e.board_fj, r.energy_fj) AS board_fraction,
    fraction(e.unattributed_fj, r.energy_fj) AS unattributed_fraction,
    fraction(e.static_fj, r.energy_fj) AS static_fraction,
    joules(e.compute_fj) / nullif(r.mac_count, 0) AS compute_per_mac_j,
    joules(e.register_fj) / nullif(r.mac_count, 0) AS register_per_mac_j,
    joules(e.on_chip_memory_fj) / nullif(r.mac_count, 0) AS on_chip_memory_per_mac_j,
    joules(e.interconnect_fj) / nullif(r.mac_count, 0) AS interconnect_per_mac_j,
    joules(e.off_chip_memory_fj) / nullif(r.mac_count, 0) AS off_chip_memory_per_mac_j,
    joules(e.control_fj) / nullif(r.mac_count, 0) AS control_per_mac_j,
    joules(e.board_fj) / nullif(r.mac_count, 0) AS board_per_mac_j,
    joules(e.unattributed_fj) / nullif(r.mac_count, 0) AS unattributed_per_mac_j,
    joules(e.static_fj) / nullif(r.mac_count, 0) AS static_per_mac_j,
    e.overhead_fj,
    r.overhead_fraction,
    fraction(e.overhead_fj, e.compute_fj) AS overhead_ratio,
    e.order_name,
    e.order_count,
    nullif(r.mac_count, 0) / nullif(e.order_count, 0e0) AS macs_per_order,
    e.unit_memory_bytes / nullif(r.mac_count, 0) AS unit_memory_bytes_per_mac,
    e.chip_memory_bytes / nullif(r.mac_count, 0) AS chip_memory_bytes_per_mac,
    r.dram_bytes / nullif(r.mac_count, 0) AS off_chip_bytes_per_mac,
    r.compute_utilization_fraction, r.compute_time_fraction, r.memory_time_fraction, r.launch_time_fraction,
    r.units_used_count, r.units_total_count, r.unit_name, r.static_power_w, r.average_power_w, r.process_node_nm,
    r.clock_fraction, r.assumed_energy_fraction, r.recalled_energy_fraction, r.is_projection, r.is_available,
    r.reason, r.run_id
FROM cube.run(run_ids := $run_ids) AS r
LEFT JOIN spent AS e ON e.run_id = r.run_id
ORDER BY r.position, r.run_id
