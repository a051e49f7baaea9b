-- What a lake has in place of the tables and views of runs: the points of its shards, of which `internal.point` is the
-- scan. Columns of the promise stand in its order; what follows them is of lakes alone.

CREATE VIEW internal.run AS
SELECT
    p.run_id,
    p.shard || ':' || p.point_index AS run_key,
    p.workload_id,
    p.hardware_digest,
    p.power_mode,
    p.precision,
    p.weight_precision,
    p.batch,
    p.runtime,
    p.calibration,
    p.refusal,
    CASE WHEN p.refusal IS NOT NULL THEN 'other' END AS refusal_code,
    CAST(NULL AS VARCHAR) AS refusal_values,
    p.units_total_count,
    p.peak_ops_per_s,
    p.memory_bandwidth_bytes_per_s,
    p.weight_bytes,
    p.activation_bytes,
    p.clock_fraction,
    p.full_clock_hz * p.clock_fraction AS clock_hz,
    p.voltage_factor,
    p.uncapped_power_w,
    p.throughput_limit,
    CASE WHEN p.latency_half_width >= ln(1000e0) THEN 'unnamed' WHEN p.uncapped_power_w IS NOT NULL THEN '' END AS broken_laws,
    '' AS placement,
    FALSE AS has_ledger,
    CAST(NULL AS DOUBLE) AS separate_clock_fraction,
    p.formula_version,
    p.package_version,
    p.created_at,
    p.calibration_digest,
    p.is_plain AND p.refusal IS NULL AS is_newest,
    '' AS content_digest,
    p.changes
FROM internal.point AS p;

CREATE VIEW internal.run_total AS
SELECT
    p.run_id,
    CAST(p.latency_fs AS HUGEINT) AS latency_fs,
    CAST(p.interval_fs AS HUGEINT) AS interval_fs,
    CAST(p.energy_fj AS HUGEINT) AS energy_fj,
    p.mac_count,
    CAST(p.computed_mac_count AS HUGEINT) AS computed_mac_count,
    CAST(p.unit_fs AS HUGEINT) AS unit_fs,
    p.dram_bytes,
    p.moved_bytes,
    p.latency_half_width,
    p.energy_half_width,
    p.edp_half_width,
    p.power_half_width,
    CAST(NULL AS DOUBLE) AS price_half_width,
    CAST(NULL AS DOUBLE) AS latency_own_half_width,
    CAST(NULL AS DOUBLE) AS energy_own_half_width,
    CAST(NULL AS DOUBLE) AS thin_half_width,
    CAST(NULL AS VARCHAR) AS latency_basis,
    CAST(NULL AS VARCHAR) AS energy_basis,
    CAST(NULL AS INTEGER) AS latency_group_count,
    CAST(NULL AS INTEGER) AS energy_group_count
FROM internal.point AS p
WHERE p.refusal IS NULL;

CREATE OR REPLACE VIEW points AS
SELECT
    p.run_id,
    {dimensions},
    p.architecture,
    {configured_hardware} AS configured_hardware,
    {precision_label} AS precision_label,
    {label} AS label,
    {series} AS series,
    string_split(p.deployment, ',') AS deployment,
    p.is_plain AND p.refusal IS NULL AS is_newest,
    seconds(p.latency_fs) AS latency_s,
    joules(p.energy_fj) AS energy_j,
    seconds(p.interval_fs) AS interval_s,
    {metrics},
    p.throughput_limit,
    CASE WHEN p.latency_half_width >= ln(1000e0) THEN 'unnamed' WHEN p.uncapped_power_w IS NOT NULL THEN '' END AS broken_laws,
    '' AS placement,
    fraction(p.energy_fj, p.interval_fs) AS average_power_w,
    p.weight_bytes + p.activation_bytes AS peak_memory_bytes,
    p.weight_bytes,
    p.activation_bytes,
    p.mac_count,
    2 * p.mac_count / seconds(p.interval_fs) AS attained_ops_per_s,
    p.peak_ops_per_s,
    utilization_of(p.computed_mac_count, p.interval_fs, p.peak_ops_per_s) AS compute_utilization_fraction,
    p.dram_bytes / seconds(p.interval_fs) / p.memory_bandwidth_bytes_per_s AS bandwidth_utilization_fraction,
    2 * p.mac_count / nullif(p.moved_bytes, 0e0) AS arithmetic_intensity_ops_per_byte,
    CAST(least((p.unit_fs + p.interval_fs - 1) // nullif(p.interval_fs, 0), p.units_total_count) AS INTEGER)
        AS units_used_count,
    p.units_total_count,
    2 * p.mac_count / joules(p.energy_fj) AS ops_per_j,
    p.clock_fraction,
    p.full_clock_hz * p.clock_fraction AS clock_hz,
    p.voltage_factor,
    p.uncapped_power_w,
    p.projection <> '' AS is_projection,
    p.unavailable = '' AS is_available,
    p.changes,
    p.created_at,
    p.calibration,
    p.formula_version,
    p.package_version,
    p.torch_version,
    p.torchvision_version,
    p.tracer_version,
    p.workload_key,
    p.hardware_digest,
    p.shard || ':' || p.point_index AS run_key,
    p.workload_id,
    seconds(p.latency_fs) * exp(-p.latency_half_width) AS latency_low_s,
    seconds(p.latency_fs) * exp(p.latency_half_width) AS latency_high_s,
    joules(p.energy_fj) * exp(-p.energy_half_width) AS energy_low_j,
    joules(p.energy_fj) * exp(p.energy_half_width) AS energy_high_j,
    fraction(p.energy_fj, p.interval_fs) * exp(-p.power_half_width) AS power_low_w,
    fraction(p.energy_fj, p.interval_fs) * exp(p.power_half_width) AS power_high_w,
    p.batch / nullif(seconds(p.interval_fs), 0e0) * exp(-p.latency_half_width) AS throughput_low_per_s,
    p.batch / nullif(seconds(p.interval_fs), 0e0) * exp(p.latency_half_width) AS throughput_high_per_s,
    joules(p.energy_fj) * seconds(p.latency_fs) * exp(-p.edp_half_width) AS edp_low_js,
    joules(p.energy_fj) * seconds(p.latency_fs) * exp(p.edp_half_width) AS edp_high_js,
    p.energy_half_width,
    CAST(NULL AS VARCHAR) AS energy_basis,
    p.latency_half_width,
    CAST(NULL AS VARCHAR) AS latency_basis,
    p.unit_name,
    p.memory_bandwidth_bytes_per_s,
    p.parameter_count,
    FALSE AS has_ledger,
    p.refusal,
    p.shard,
    p.point_index,
    p.is_edge,
    p.bottleneck,
    p.latency_fs,
    p.interval_fs,
    p.energy_fj,
    p.compute_fj,
    p.register_fj,
    p.unit_memory_fj,
    p.chip_memory_fj,
    p.interconnect_fj,
    p.off_chip_memory_fj,
    p.communication_fj,
    p.control_fj,
    p.board_fj,
    p.unattributed_fj,
    p.static_fj,
    p.dram_bytes,
    p.{varied}
FROM (
    SELECT
        *,
        -- names of the tables that texts of dimensions read
        {
            'model': model,
            'input_spec': input_spec,
            'source': source,
            'input_shape': input_shape,
            'batch': batch,
            'dimensions': CAST(MAP {} AS MAP(VARCHAR, VARCHAR))
        } AS w,
        {'hardware': hardware, 'boundary': boundary, 'host': host, 'matmul_precision': matmul_precision} AS v,
        {
            'power_mode': power_mode,
            'precision': precision,
            'weight_precision': weight_precision,
            'batch': batch,
            'runtime': runtime
        } AS r
    FROM internal.point
) AS p;
COMMENT ON VIEW points IS 'Every point of a lake, evaluated or refused: the columns of run_figures, its totals as whole femtoseconds and femtojoules, energy by common category, and a column set_NAME for each constant that was varied, null where it was not';

CREATE OR REPLACE VIEW run_figures AS
SELECT * EXCLUDE (
    shard, point_index, is_edge, bottleneck, latency_fs, interval_fs, energy_fj, compute_fj, register_fj, unit_memory_fj, chip_memory_fj, interconnect_fj, off_chip_memory_fj, communication_fj, control_fj, board_fj, unattributed_fj, static_fj, dram_bytes
)
FROM points;
CREATE OR REPLACE VIEW runs AS SELECT * EXCLUDE (refusal) FROM run_figures WHERE refusal IS NULL;

-- designs of one hardware differ as much as versions of it do
CREATE OR REPLACE VIEW run_errors AS
SELECT
    u.run_id,
    u.latency_half_width,
    u.energy_half_width,
    u.latency_own_half_width,
    u.energy_own_half_width,
    v.architecture,
    board_of(v.hardware) AS hardware,
    w.source AS model,
    {error_case} AS configuration,
    concat_ws(' ', w.source, w.input_spec, r.hardware_digest, CAST(r.changes AS VARCHAR), {label}) AS own
FROM internal.run_total AS u
JOIN internal.run AS r ON r.run_id = u.run_id
JOIN internal.workload AS w ON w.workload_id = r.workload_id
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest;
