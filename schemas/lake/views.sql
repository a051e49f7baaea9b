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
    nullif(p.refusal, '') AS refusal,
    nullif(p.units_total_count, 0) AS units_total_count,
    nullif(p.peak_ops_per_s, 0e0) AS peak_ops_per_s,
    nullif(p.memory_bandwidth_bytes_per_s, 0e0) AS memory_bandwidth_bytes_per_s,
    p.weight_bytes,
    p.activation_bytes,
    nullif(p.clock_fraction, 0e0) AS clock_fraction,
    p.full_clock_hz * nullif(p.clock_fraction, 0e0) AS clock_hz,
    nullif(p.voltage_factor, 0e0) AS voltage_factor,
    nullif(p.uncapped_power_w, 0e0) AS uncapped_power_w,
    nullif(p.throughput_limit, '') AS throughput_limit,
    CAST(NULL AS DOUBLE) AS separate_clock_fraction,
    p.formula_version,
    p.package_version,
    p.created_at,
    p.calibration_digest,
    {changes} AND p.refusal = '' AS is_newest,
    '' AS content_digest,
    {told} AS changes
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
    nullif(p.latency_half_width, 0e0) AS latency_half_width,
    nullif(p.energy_half_width, 0e0) AS energy_half_width,
    sqrt(pow(p.latency_half_width, 2) + pow(p.energy_half_width, 2)
        + 2 * error_correlation() * p.latency_half_width * p.energy_half_width) AS edp_half_width,
    sqrt(pow(p.latency_half_width, 2) + pow(p.energy_half_width, 2)
        - 2 * error_correlation() * p.latency_half_width * p.energy_half_width) AS power_half_width,
    CAST(NULL AS DOUBLE) AS price_half_width,
    CAST(NULL AS DOUBLE) AS latency_own_half_width,
    CAST(NULL AS DOUBLE) AS energy_own_half_width,
    CAST(NULL AS VARCHAR) AS latency_basis,
    CAST(NULL AS VARCHAR) AS energy_basis,
    CAST(NULL AS INTEGER) AS latency_group_count,
    CAST(NULL AS INTEGER) AS energy_group_count
FROM internal.point AS p
WHERE p.refusal = '';

CREATE OR REPLACE VIEW points AS
SELECT
    p.run_id,
    {dimensions},
    p.architecture,
    p.{label},
    string_split(p.deployment, ',') AS deployment,
    {changes} AND p.refusal = '' AS is_newest,
    CASE WHEN p.refusal = '' THEN seconds(p.latency_fs) END AS latency_s,
    CASE WHEN p.refusal = '' THEN joules(p.energy_fj) END AS energy_j,
    CASE WHEN p.refusal = '' THEN joules(p.energy_fj) / p.batch END AS energy_per_inference_j,
    CASE WHEN p.refusal = '' THEN p.batch / joules(p.energy_fj) END AS inferences_per_j,
    CASE WHEN p.refusal = '' THEN edp_of(p.energy_fj, p.latency_fs) END AS edp_js,
    CASE WHEN p.refusal = '' THEN joules(p.energy_fj) / p.batch * seconds(p.latency_fs) END AS edp_per_inference_js,
    CASE WHEN p.refusal = '' THEN p.batch / seconds(p.interval_fs) END AS throughput_per_s,
    CASE WHEN p.refusal = '' THEN seconds(p.interval_fs) END AS interval_s,
    nullif(p.throughput_limit, '') AS throughput_limit,
    CASE WHEN p.refusal = '' THEN fraction(p.energy_fj, p.interval_fs) END AS average_power_w,
    CASE WHEN p.refusal = '' THEN p.weight_bytes + p.activation_bytes END AS peak_memory_bytes,
    CASE WHEN p.refusal = '' THEN p.weight_bytes END AS weight_bytes,
    CASE WHEN p.refusal = '' THEN p.activation_bytes END AS activation_bytes,
    CASE WHEN p.refusal = '' THEN p.mac_count END AS mac_count,
    CASE WHEN p.refusal = '' THEN 2 * p.mac_count / seconds(p.interval_fs) END AS attained_ops_per_s,
    CASE WHEN p.refusal = '' THEN p.peak_ops_per_s END AS peak_ops_per_s,
    CASE WHEN p.refusal = '' THEN utilization_of(p.computed_mac_count, p.interval_fs, p.peak_ops_per_s) END
        AS compute_utilization_fraction,
    CASE WHEN p.refusal = '' THEN p.dram_bytes / seconds(p.interval_fs) / p.memory_bandwidth_bytes_per_s END
        AS bandwidth_utilization_fraction,
    CASE WHEN p.refusal = '' THEN 2 * p.mac_count / nullif(p.moved_bytes, 0) END AS arithmetic_intensity_ops_per_byte,
    CASE
        WHEN p.refusal = ''
            THEN CAST(least((p.unit_fs + p.interval_fs - 1) // nullif(p.interval_fs, 0), p.units_total_count) AS INTEGER)
    END AS units_used_count,
    nullif(p.units_total_count, 0) AS units_total_count,
    CASE WHEN p.refusal = '' THEN 2 * p.mac_count / joules(p.energy_fj) END AS ops_per_j,
    nullif(p.clock_fraction, 0e0) AS clock_fraction,
    p.full_clock_hz * nullif(p.clock_fraction, 0e0) AS clock_hz,
    nullif(p.voltage_factor, 0e0) AS voltage_factor,
    nullif(p.uncapped_power_w, 0e0) AS uncapped_power_w,
    p.projection <> '' AS is_projection,
    p.unavailable = '' AS is_available,
    {told} AS changes,
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
    CASE WHEN p.refusal = '' THEN seconds(p.latency_fs) * exp(-p.latency_half_width) END AS latency_low_s,
    CASE WHEN p.refusal = '' THEN seconds(p.latency_fs) * exp(p.latency_half_width) END AS latency_high_s,
    CASE WHEN p.refusal = '' THEN joules(p.energy_fj) * exp(-p.energy_half_width) END AS energy_low_j,
    CASE WHEN p.refusal = '' THEN joules(p.energy_fj) * exp(p.energy_half_width) END AS energy_high_j,
    fraction(p.energy_fj, p.interval_fs) * exp(-{power_half_width}) AS power_low_w,
    fraction(p.energy_fj, p.interval_fs) * exp({power_half_width}) AS power_high_w,
    p.batch / nullif(seconds(p.interval_fs), 0e0) * exp(-p.latency_half_width) AS throughput_low_per_s,
    p.batch / nullif(seconds(p.interval_fs), 0e0) * exp(p.latency_half_width) AS throughput_high_per_s,
    CASE WHEN p.refusal = '' THEN edp_of(p.energy_fj, p.latency_fs) * exp(-{edp_half_width}) END AS edp_low_js,
    CASE WHEN p.refusal = '' THEN edp_of(p.energy_fj, p.latency_fs) * exp({edp_half_width}) END AS edp_high_js,
    nullif(p.energy_half_width, 0e0) AS energy_half_width,
    CAST(NULL AS VARCHAR) AS energy_basis,
    nullif(p.latency_half_width, 0e0) AS latency_half_width,
    CAST(NULL AS VARCHAR) AS latency_basis,
    p.unit_name,
    CASE WHEN p.refusal = '' THEN p.memory_bandwidth_bytes_per_s END AS memory_bandwidth_bytes_per_s,
    p.parameter_count,
    nullif(p.refusal, '') AS refusal,
    p.shard,
    p.point_index,
    nullif(p.bottleneck, '') AS bottleneck,
    p.latency_fs,
    p.interval_fs,
    p.energy_fj,
    p.{category},
    p.dram_bytes,
    p.{varied}
FROM internal.point AS p;
COMMENT ON VIEW points IS 'Every point of a lake, evaluated or refused: the columns of run_figures, its totals as whole femtoseconds and femtojoules, energy by common category, and a column set_NAME for each constant that was varied, null where it was not';

CREATE OR REPLACE VIEW run_figures AS SELECT p.{promised}, p.{varied} FROM points AS p;
CREATE OR REPLACE VIEW runs AS SELECT * EXCLUDE (refusal) FROM run_figures WHERE refusal IS NULL;
