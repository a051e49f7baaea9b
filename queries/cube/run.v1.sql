/*
summary = "Totals of runs: configuration, energy by part, time, rates, utilization, memory, bottlenecks"
grain = "one row per requested run"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`" }
rows = { type = "VARCHAR", default = "all", meaning = "all: refused runs too, with null figures; evaluated: no refused run" }
[columns]
hardware_id = { type = "VARCHAR", meaning = "catalogue id" }
hardware_digest = { type = "VARCHAR", meaning = "digest of the hardware's numbers" }
power_mode = { type = "VARCHAR", meaning = "power mode; `default` if the hardware is named without @MODE" }
label = { type = "VARCHAR", meaning = "configuration as a text" }
series = { type = "VARCHAR", meaning = "key of the run's series in a sweep" }
status = { type = "VARCHAR", meaning = "status: ok or unsupported" }
energy_fj = { type = "HUGEINT", null = "all", unit = "fJ", meaning = "energy per batch, static energy included, exact" }
energy_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "energy per batch, static energy included" }
energy_per_inference_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "energy over batch" }
inferences_per_j = { type = "DOUBLE", null = "all", unit = "1/J", meaning = "efficiency: inferences per joule" }
compute_energy_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "energy of arithmetic and its registers" }
memory_energy_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "energy of moving and storing data" }
control_energy_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "energy of control and of regulator losses" }
static_energy_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "static power x time between batches" }
overhead_energy_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "energy of architectural overhead: neither arithmetic, off-chip memory, board, unattributed, host nor static" }
overhead_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy that is architectural overhead" }
assumed_energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy whose energy per action is assumed" }
recalled_energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy whose energy per action is recalled: a public number that was not verified against its source" }
unattributed_energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy that no counted action explains: implied by the power limit, or a residual fitted to boards" }
latency_fs = { type = "HUGEINT", null = "all", unit = "fs", meaning = "latency per batch, exact" }
latency_s = { type = "DOUBLE", null = "all", unit = "s", meaning = "latency per batch" }
interval_s = { type = "DOUBLE", null = "all", unit = "s", meaning = "time between batches in steady state: the latency where batches do not overlap" }
throughput_per_s = { type = "DOUBLE", null = "all", unit = "1/s", meaning = "inferences per second" }
placement = { type = "VARCHAR", meaning = "placement on a box: how the model is divided, and the devices that run a part of it; empty for a chip" }
throughput_limit = { type = "VARCHAR", null = "all", meaning = "throughput limit: latency, where a batch starts after another has ended; cores, devices or pipeline stage that are always busy; memory bandwidth; power cap" }
average_power_w = { type = "DOUBLE", null = "all", unit = "W", meaning = "energy over the time between batches" }
edp_js = { type = "DOUBLE", null = "all", unit = "Js", meaning = "energy x latency" }
edp_per_inference_js = { type = "DOUBLE", null = "all", unit = "Js", meaning = "energy of one inference x latency of its batch" }
energy_low_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "lower end of the 80 % interval of energy_j" }
energy_high_j = { type = "DOUBLE", null = "all", unit = "J", meaning = "upper end of the 80 % interval of energy_j" }
energy_half_width = { type = "DOUBLE", null = "all", meaning = "half-width of the 80 % interval, of the logarithm" }
energy_doubt = { type = "VARCHAR", null = "all", meaning = "origin of the energy interval" }
latency_low_s = { type = "DOUBLE", null = "all", unit = "s", meaning = "lower end of the 80 % interval of latency_s" }
latency_high_s = { type = "DOUBLE", null = "all", unit = "s", meaning = "upper end of the 80 % interval of latency_s" }
latency_half_width = { type = "DOUBLE", null = "all", meaning = "half-width of the 80 % interval, of the logarithm" }
latency_doubt = { type = "VARCHAR", null = "all", meaning = "origin of the latency interval" }
mac_count = { type = "BIGINT", null = "all", meaning = "multiply-accumulates of the batch" }
attained_ops_per_s = { type = "DOUBLE", null = "all", unit = "ops/s", meaning = "operations, two per MAC, over the time between batches" }
peak_ops_per_s = { type = "DOUBLE", null = "all", unit = "ops/s", meaning = "dense peak at this precision and power mode" }
compute_utilization_fraction = { type = "DOUBLE", null = "all", meaning = "operations computed over those that the peak allows, in steady state" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", null = "all", unit = "B/s", meaning = "bandwidth of the off-chip memory, as published" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = "all", meaning = "attained over published off-chip bandwidth" }
arithmetic_intensity_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "operations over bytes that cross kernel boundaries, on chip or off" }
dram_intensity_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "operations over bytes moved off chip; null where no bytes move" }
ops_per_j = { type = "DOUBLE", null = "all", unit = "ops/J", meaning = "attained operations per second and watt, two per MAC; 1e12 is one TOPS/W" }
units_used_count = { type = "INTEGER", null = "all", meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", null = "all", meaning = "units that support this precision" }
idle_units_fraction = { type = "DOUBLE", null = "all", meaning = "1 - time-weighted mean of the units with work over all units" }
dram_bytes = { type = "DOUBLE", null = "all", unit = "B", meaning = "bytes read and written off chip" }
pass_bytes = { type = "DOUBLE", null = "all", unit = "B", meaning = "bytes read and written again by passes that the runtime adds and by kernels that move more than their operands, at any level" }
peak_memory_bytes = { type = "BIGINT", null = "all", unit = "B", meaning = "weights and peak activations" }
weight_bytes = { type = "BIGINT", null = "all", unit = "B", meaning = "parameters and buffers read, as stored" }
activation_bytes = { type = "BIGINT", null = "all", unit = "B", meaning = "peak of live activations" }
memory_capacity_bytes = { type = "DOUBLE", unit = "B", meaning = "capacity of the hardware's memory; a model that does not fit is refused" }
memory_fraction = { type = "DOUBLE", null = "all", meaning = "peak memory over capacity" }
clock_fraction = { type = "DOUBLE", null = "all", meaning = "share of the full clock; below 1 where the power cap lowers it" }
clock_hz = { type = "DOUBLE", null = "all", unit = "Hz", meaning = "clock in steady state, after any reduction by the power cap" }
voltage_factor = { type = "DOUBLE", null = "all", meaning = "energy of an on-chip action at clock_hz, relative to its energy at the highest voltage of the die" }
uncapped_power_w = { type = "DOUBLE", null = "all", unit = "W", meaning = "power at the full clock; above the power cap where the cap lowers the clock" }
tdp_w = { type = "DOUBLE", unit = "W", meaning = "the power cap" }
static_power_w = { type = "DOUBLE", unit = "W", meaning = "power drawn regardless of the work" }
process_node_nm = { type = "DOUBLE", null = true, unit = "nm", meaning = "process node of the chip" }
dram_efficiency = { type = "DOUBLE", meaning = "share of the published off-chip bandwidth that its class sustains" }
subgraph_count = { type = "BIGINT", null = "all", meaning = "subgraphs that run" }
operator_count = { type = "BIGINT", null = "all", meaning = "operators that run" }
kernel_count = { type = "HUGEINT", null = "all", meaning = "kernels launched" }
tile_count = { type = "DOUBLE", null = "all", meaning = "tiles of all subgraphs" }
wave_count = { type = "DOUBLE", null = "all", meaning = "rounds of tiles over the units, of all subgraphs" }
wave_fill_fraction = { type = "DOUBLE", null = true, meaning = "tiles over waves x units; null without tiles" }
computed_mac_count = { type = "DOUBLE", null = "all", meaning = "MACs that the units compute" }
executed_mac_count = { type = "DOUBLE", null = true, meaning = "MAC slots of the tiles, padding included" }
padding_fraction = { type = "DOUBLE", null = true, meaning = "share of executed_mac_count without a MAC" }
compute_bound_count = { type = "BIGINT", null = "all", meaning = "number of compute-bound subgraphs" }
memory_bound_count = { type = "BIGINT", null = "all", meaning = "number of memory-bound subgraphs" }
launch_bound_count = { type = "BIGINT", null = "all", meaning = "number of launch-bound subgraphs" }
compute_time_fraction = { type = "DOUBLE", null = true, meaning = "share of the latency that is neither launches nor waiting for memory" }
memory_time_fraction = { type = "DOUBLE", null = true, meaning = "share of the latency that is waiting for memory, with passes that the runtime adds" }
launch_time_fraction = { type = "DOUBLE", null = true, meaning = "share of the latency that is the fixed cost of kernels" }
parameter_count = { type = "BIGINT", meaning = "elements of all parameters" }
reason = { type = "VARCHAR", meaning = "reason of refusal" }
created_at = { type = "TIMESTAMP", unit = "UTC", meaning = "time of storing" }
*/
WITH spent AS (
    SELECT
        l.run_id,
        unnest(energy_by_part(a.part, a.common_category, l.energy_fj)),
        sum(CASE WHEN e.basis = 'assumed' THEN l.energy_fj ELSE 0 END) AS assumed_fj,
        sum(CASE WHEN e.basis = 'recalled' THEN l.energy_fj ELSE 0 END) AS recalled_fj,
        sum(CASE WHEN a.common_category = 'unattributed' THEN l.energy_fj ELSE 0 END) AS unattributed_fj
    FROM internal.run_action AS l
    JOIN internal.run AS r ON r.run_id = l.run_id
    JOIN internal.action AS a ON a.action_id = l.action_id
    JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
    GROUP BY l.run_id
),
allocation AS (
    SELECT
        run_id,
        sum(latency_fs) AS latency_fs,
        sum(dram_bytes ORDER BY subgraph_index) AS dram_bytes,
        sum(pass_bytes ORDER BY subgraph_index) AS pass_bytes,
        sum(tile_count ORDER BY subgraph_index) AS tile_count,
        sum(wave_count ORDER BY subgraph_index) AS wave_count,
        CASE
            WHEN count(executed_mac_count) = count(*) THEN sum(executed_mac_count ORDER BY subgraph_index)
        END AS executed_mac_count,
        CAST(sum(computed_mac_count) AS DOUBLE) AS computed_mac_count,
        sum(CAST(units_used_count AS HUGEINT) * latency_fs) AS unit_fs,
        sum(kernel_count) AS kernel_count,
        count(*) AS subgraph_count,
        count(*) FILTER (WHERE bottleneck = 'compute') AS compute_bound_count,
        count(*) FILTER (WHERE bottleneck = 'memory') AS memory_bound_count,
        count(*) FILTER (WHERE bottleneck = 'launch') AS launch_bound_count,
        sum(latency_fs - launch_fs - memory_fs) AS compute_fs,
        sum(memory_fs) AS memory_fs,
        sum(launch_fs) AS launch_fs
    FROM (
        -- launches first; then passes of the runtime, and the rest by the larger of computing and memory
        SELECT
            s.*,
            least(s.latency_fs, CAST(round(s.launch_s * 1e15) AS BIGINT)) AS launch_fs,
            least(
                s.latency_fs - launch_fs,
                CASE WHEN s.compute_s >= s.memory_s THEN CAST(round(s.pass_s * 1e15) AS BIGINT) ELSE s.latency_fs END
            ) AS memory_fs
        FROM internal.run_subgraph AS s
        WHERE s.run_id IN (SELECT unnest($run_ids))
    ) AS t
    GROUP BY run_id
),
work AS (
    SELECT run_id, count(*) AS operator_count
    FROM internal.run_operator
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id
),
fact AS (
    SELECT
        f.hardware_digest,
        max(f.value) FILTER (WHERE f.quantity = 'tdp') AS tdp_w,
        max(f.value) FILTER (WHERE f.quantity = 'static_power') AS static_power_w,
        max(f.value) FILTER (WHERE f.quantity = 'memory_capacity') AS memory_capacity_bytes,
        max(f.value) FILTER (WHERE f.quantity = 'process_node') AS process_node_nm,
        max(f.value) FILTER (WHERE f.quantity = dram_efficiency_of(v.architecture, v.memory_type)) AS dram_efficiency
    FROM internal.hardware_fact AS f
    JOIN internal.hardware_version AS v ON v.hardware_digest = f.hardware_digest
    WHERE f.hardware_digest IN (SELECT hardware_digest FROM internal.run WHERE run_id IN (SELECT unnest($run_ids)))
    GROUP BY f.hardware_digest
)
SELECT
    r.run_id,
    list_position($run_ids, r.run_id) AS position,
    r.workload_id,
    r.model,
    r.configured_hardware AS hardware,
    r.hardware AS hardware_id,
    r.hardware_digest,
    r.architecture,
    v.microarchitecture,
    r.power_mode,
    r.deployment,
    r.batch,
    r.precision_label AS "precision",
    r.runtime,
    r.label,
    r.series,
    CASE WHEN r.refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    e.energy_fj,
    r.energy_j,
    r.energy_per_inference_j,
    r.inferences_per_j,
    joules(e.compute_fj) AS compute_energy_j,
    joules(e.memory_fj) AS memory_energy_j,
    joules(e.control_fj) AS control_energy_j,
    joules(e.static_fj) AS static_energy_j,
    joules(e.overhead_fj) AS overhead_energy_j,
    fraction(e.overhead_fj, e.energy_fj) AS overhead_fraction,
    fraction(e.assumed_fj, e.energy_fj) AS assumed_energy_fraction,
    fraction(e.recalled_fj, e.energy_fj) AS recalled_energy_fraction,
    fraction(e.unattributed_fj, e.energy_fj) AS unattributed_energy_fraction,
    a.latency_fs,
    r.latency_s,
    r.interval_s,
    r.throughput_per_s,
    r.placement,
    r.throughput_limit,
    r.average_power_w,
    r.edp_js,
    r.edp_per_inference_js,
    r.energy_low_j,
    r.energy_high_j,
    r.energy_half_width,
    r.energy_basis AS energy_doubt,
    r.latency_low_s,
    r.latency_high_s,
    r.latency_half_width,
    r.latency_basis AS latency_doubt,
    r.mac_count,
    r.attained_ops_per_s,
    r.peak_ops_per_s,
    r.compute_utilization_fraction,
    r.memory_bandwidth_bytes_per_s,
    r.bandwidth_utilization_fraction,
    r.arithmetic_intensity_ops_per_byte,
    2 * r.mac_count / nullif(a.dram_bytes, 0e0) AS dram_intensity_ops_per_byte,
    r.ops_per_j,
    r.units_used_count,
    r.units_total_count,
    r.unit_name,
    CASE
        WHEN r.interval_s IS NOT NULL
            THEN greatest(1e0 - seconds(CAST(a.unit_fs AS DOUBLE)) / (r.interval_s * r.units_total_count), 0e0)
    END
    AS idle_units_fraction,
    a.dram_bytes,
    a.pass_bytes,
    r.peak_memory_bytes,
    r.weight_bytes,
    r.activation_bytes,
    f.memory_capacity_bytes,
    r.peak_memory_bytes / f.memory_capacity_bytes AS memory_fraction,
    r.clock_fraction,
    r.clock_hz,
    r.voltage_factor,
    r.uncapped_power_w,
    f.tdp_w,
    f.static_power_w,
    f.process_node_nm,
    coalesce(f.dram_efficiency, 1e0) AS dram_efficiency,
    a.subgraph_count,
    o.operator_count,
    a.kernel_count,
    a.tile_count,
    a.wave_count,
    a.tile_count / nullif(a.wave_count * r.units_total_count, 0e0) AS wave_fill_fraction,
    a.computed_mac_count,
    a.executed_mac_count,
    1e0 - r.mac_count / nullif(a.executed_mac_count, 0e0) AS padding_fraction,
    a.compute_bound_count,
    a.memory_bound_count,
    a.launch_bound_count,
    fraction(a.compute_fs, a.latency_fs) AS compute_time_fraction,
    fraction(a.memory_fs, a.latency_fs) AS memory_time_fraction,
    fraction(a.launch_fs, a.latency_fs) AS launch_time_fraction,
    r.parameter_count,
    r.is_projection,
    r.is_available,
    coalesce(r.refusal, '') AS reason,
    r.created_at, r.{metric}
FROM run_figures AS r
LEFT JOIN spent AS e ON e.run_id = r.run_id
LEFT JOIN allocation AS a ON a.run_id = r.run_id
LEFT JOIN work AS o ON o.run_id = r.run_id
LEFT JOIN fact AS f ON f.hardware_digest = r.hardware_digest
LEFT JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
WHERE r.run_id IN (SELECT unnest($run_ids)) AND ($rows = 'all' OR r.refusal IS NULL)
ORDER BY position, r.run_id
