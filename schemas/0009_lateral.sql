-- A filter on runs reaches the tables: what is summed is looked up for the runs that are left, so that a question about
-- one model reads the rows of its runs and not every row. Each view has one lateral join that refers to both run_id and
-- workload_id: with two, or with run_id alone, the engine makes plain joins of them and sums everything first.
-- Columns and meaning are unchanged; bytes are added as decimals, whose sum does not depend on the order.

CREATE OR REPLACE VIEW runs AS
SELECT
    r.run_id,
    w.model,
    v.hardware,
    v.architecture,
    r.power_mode,
    r.precision,
    r.batch,
    r.runtime,
    CAST(x.latency_fs AS DOUBLE) / 1e15 AS latency_s,
    joules(x.energy_fj) AS energy_j,
    joules(x.energy_fj) / r.batch AS energy_per_inference_j,
    joules(x.energy_fj) * (CAST(x.latency_fs AS DOUBLE) / 1e15) AS edp_js,
    r.batch / (CAST(x.latency_fs AS DOUBLE) / 1e15) AS throughput_per_s,
    CAST(x.energy_fj AS DOUBLE) / CAST(x.latency_fs AS DOUBLE) AS average_power_w,
    r.weight_bytes + r.activation_bytes AS peak_memory_bytes,
    r.weight_bytes,
    r.activation_bytes,
    x.mac_count,
    2 * x.mac_count / (CAST(x.latency_fs AS DOUBLE) / 1e15) AS attained_ops_per_s,
    r.peak_ops_per_s,
    2 * x.mac_count / (CAST(x.latency_fs AS DOUBLE) / 1e15) / r.peak_ops_per_s AS compute_utilization_fraction,
    x.dram_bytes / (CAST(x.latency_fs AS DOUBLE) / 1e15) / r.memory_bandwidth_bytes_per_s
        AS bandwidth_utilization_fraction,
    2 * x.mac_count / nullif(x.moved_bytes, 0) AS arithmetic_intensity_ops_per_byte,
    CAST((x.unit_fs + x.latency_fs - 1) // nullif(x.latency_fs, 0) AS INTEGER) AS units_used_count,
    r.units_total_count,
    2 * x.mac_count / (CAST(x.energy_fj AS DOUBLE) / 1e15) AS ops_per_j,
    r.clock_fraction,
    v.projection <> '' AS is_projection,
    r.created_at,
    r.calibration,
    r.formula_version,
    r.package_version,
    w.torch_version,
    w.torchvision_version,
    w.tracer_version,
    w.workload_key,
    r.hardware_digest,
    r.run_key,
    r.workload_id
FROM run AS r
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN LATERAL (
    SELECT s.latency_fs, s.dram_bytes, s.moved_bytes, s.unit_fs, e.energy_fj, o.mac_count
    FROM (
        SELECT
            sum(t.latency_fs) AS latency_fs,
            CAST(sum(CAST(t.dram_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS dram_bytes,
            CAST(sum(CAST(t.moved_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS moved_bytes,
            sum(CAST(t.units_used_count AS HUGEINT) * t.latency_fs) AS unit_fs
        FROM run_subgraph AS t
        WHERE t.run_id = r.run_id
    ) AS s
    CROSS JOIN (
        SELECT sum(l.energy_fj) AS energy_fj
        FROM ledger_line AS l
        WHERE l.run_id = r.run_id
    ) AS e
    CROSS JOIN (
        SELECT CAST(sum(q.mac_count) AS BIGINT) AS mac_count
        FROM run_operator AS p
        JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = p.operator_index
        WHERE p.run_id = r.run_id
    ) AS o
) AS x ON x.latency_fs IS NOT NULL AND x.energy_fj IS NOT NULL AND x.mac_count IS NOT NULL
WHERE r.refusal IS NULL;
COMMENT ON VIEW runs IS 'Evaluated runs. Energy and latency are per batch; units_used_count is the mean over time of the units with work, rounded up';

CREATE OR REPLACE VIEW subgraph_results AS
SELECT
    r.run_id,
    w.model,
    v.hardware,
    p.subgraph_index,
    g.name,
    g.pattern AS fusion_pattern,
    p.operator_count,
    p.mac_count,
    p.moved_bytes,
    p.dram_bytes,
    CAST(p.latency_fs AS DOUBLE) / 1e15 AS latency_s,
    p.compute_s,
    p.memory_s,
    p.launch_s,
    CAST(p.energy_fj AS DOUBLE) / 1e15 AS energy_j,
    CAST(p.compute_fj AS DOUBLE) / 1e15 AS compute_energy_j,
    CAST(p.memory_fj AS DOUBLE) / 1e15 AS memory_energy_j,
    CAST(p.control_fj AS DOUBLE) / 1e15 AS control_energy_j,
    CAST(p.static_fj AS DOUBLE) / 1e15 AS static_energy_j,
    CAST(p.energy_fj AS DOUBLE) / 1e15 * (CAST(p.latency_fs AS DOUBLE) / 1e15) AS edp_js,
    (
        CAST(p.energy_fj AS DOUBLE) / 1e15 * (CAST(p.run_latency_fs AS DOUBLE) / 1e15)
        + CAST(p.run_energy_fj AS DOUBLE) / 1e15 * (CAST(p.latency_fs AS DOUBLE) / 1e15)
    ) / 2e0 AS edp_share_js,
    p.units_used_count,
    r.units_total_count,
    p.tile_count,
    p.wave_count,
    p.kernel_count,
    2 * p.mac_count / nullif(CAST(p.latency_fs AS DOUBLE) / 1e15, 0) / r.peak_ops_per_s
        AS compute_utilization_fraction,
    p.dram_bytes / nullif(CAST(p.latency_fs AS DOUBLE) / 1e15, 0) / r.memory_bandwidth_bytes_per_s
        AS bandwidth_utilization_fraction,
    p.bottleneck,
    p.executed_mac_count,
    p.tile_count / nullif(p.wave_count * r.units_total_count, 0e0) AS wave_fill_fraction,
    1e0 - p.mac_count / nullif(p.executed_mac_count, 0e0) AS padding_fraction
FROM run AS r
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN LATERAL (
    SELECT
        subgraph_index,
        any_value(latency_fs) AS latency_fs,
        any_value(compute_s) AS compute_s,
        any_value(memory_s) AS memory_s,
        any_value(launch_s) AS launch_s,
        any_value(dram_bytes) AS dram_bytes,
        any_value(moved_bytes) AS moved_bytes,
        any_value(tile_count) AS tile_count,
        any_value(wave_count) AS wave_count,
        any_value(units_used_count) AS units_used_count,
        any_value(kernel_count) AS kernel_count,
        any_value(executed_mac_count) AS executed_mac_count,
        any_value(bottleneck) AS bottleneck,
        any_value(operator_count) AS operator_count,
        any_value(mac_count) AS mac_count,
        coalesce(any_value(energy_fj), 0) AS energy_fj,
        coalesce(any_value(compute_fj), 0) AS compute_fj,
        coalesce(any_value(memory_fj), 0) AS memory_fj,
        coalesce(any_value(control_fj), 0) AS control_fj,
        coalesce(any_value(static_fj), 0) AS static_fj,
        sum(any_value(latency_fs)) OVER () AS run_latency_fs,
        sum(any_value(energy_fj)) OVER () AS run_energy_fj
    FROM (
        SELECT
            s.subgraph_index,
            s.latency_fs,
            s.compute_s,
            s.memory_s,
            s.launch_s,
            s.dram_bytes,
            s.moved_bytes,
            s.tile_count,
            s.wave_count,
            s.units_used_count,
            s.kernel_count,
            s.executed_mac_count,
            s.bottleneck
        FROM run_subgraph AS s
        WHERE s.run_id = r.run_id
        UNION ALL BY NAME
        SELECT
            l.subgraph_index,
            sum(l.energy_fj) AS energy_fj,
            sum(CASE WHEN a.part = 'compute' THEN l.energy_fj ELSE 0 END) AS compute_fj,
            sum(CASE WHEN a.part = 'memory' THEN l.energy_fj ELSE 0 END) AS memory_fj,
            sum(CASE WHEN a.part = 'control' THEN l.energy_fj ELSE 0 END) AS control_fj,
            sum(CASE WHEN a.part = 'static' THEN l.energy_fj ELSE 0 END) AS static_fj
        FROM ledger_line AS l
        JOIN action AS a ON a.action_id = l.action_id
        WHERE l.run_id = r.run_id
        GROUP BY l.subgraph_index
        UNION ALL BY NAME
        SELECT o.subgraph_index, count(*) AS operator_count, CAST(sum(q.mac_count) AS BIGINT) AS mac_count
        FROM run_operator AS o
        JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
        WHERE o.run_id = r.run_id
        GROUP BY o.subgraph_index
    )
    GROUP BY subgraph_index
) AS p ON p.latency_fs IS NOT NULL AND p.mac_count IS NOT NULL
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = p.subgraph_index;
COMMENT ON VIEW subgraph_results IS 'Allocations: each subgraph on the hardware of a run. wave_fill_fraction is tiles over waves x units, padding_fraction the part of its tiles'' MAC slots without a MAC. edp_share_js sums to the run''s EDP, edp_js does not';

CREATE OR REPLACE VIEW operator_results AS
SELECT
    r.run_id,
    w.model,
    v.hardware,
    p.subgraph_index,
    p.operator_index,
    p.name,
    p.operation,
    p.kind,
    p.mac_count,
    p.moved_bytes,
    CAST(p.latency_fs AS DOUBLE) / 1e15 AS latency_s,
    CAST(p.energy_fj AS DOUBLE) / 1e15 AS energy_j,
    CAST(p.compute_fj AS DOUBLE) / 1e15 AS compute_energy_j,
    CAST(p.memory_fj AS DOUBLE) / 1e15 AS memory_energy_j,
    CAST(p.control_fj AS DOUBLE) / 1e15 AS control_energy_j,
    CAST(p.static_fj AS DOUBLE) / 1e15 AS static_energy_j,
    CAST(p.energy_fj AS DOUBLE) / 1e15 * (CAST(p.latency_fs AS DOUBLE) / 1e15) AS edp_js,
    (
        CAST(p.energy_fj AS DOUBLE) / 1e15 * (CAST(p.run_latency_fs AS DOUBLE) / 1e15)
        + CAST(p.run_energy_fj AS DOUBLE) / 1e15 * (CAST(p.latency_fs AS DOUBLE) / 1e15)
    ) / 2e0 AS edp_share_js,
    r.runtime = 'fused' AND p.subgraph_operator_count > 1 AS is_fused,
    CAST(p.separate_energy_fj AS DOUBLE) / 1e15 AS separate_energy_j,
    CAST(p.separate_latency_fs AS DOUBLE) / 1e15 AS separate_latency_s
FROM run AS r
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN LATERAL (
    SELECT
        operator_index,
        any_value(subgraph_index) AS subgraph_index,
        any_value(name) AS name,
        any_value(operation) AS operation,
        any_value(kind) AS kind,
        any_value(mac_count) AS mac_count,
        any_value(latency_fs) AS latency_fs,
        any_value(moved_bytes) AS moved_bytes,
        any_value(separate_latency_fs) AS separate_latency_fs,
        any_value(separate_energy_fj) AS separate_energy_fj,
        coalesce(any_value(energy_fj), 0) AS energy_fj,
        coalesce(any_value(compute_fj), 0) AS compute_fj,
        coalesce(any_value(memory_fj), 0) AS memory_fj,
        coalesce(any_value(control_fj), 0) AS control_fj,
        coalesce(any_value(static_fj), 0) AS static_fj,
        count(any_value(latency_fs)) OVER (PARTITION BY any_value(subgraph_index)) AS subgraph_operator_count,
        sum(any_value(latency_fs)) OVER () AS run_latency_fs,
        sum(any_value(energy_fj)) OVER () AS run_energy_fj
    FROM (
        SELECT
            o.operator_index,
            o.subgraph_index,
            q.name,
            q.operation,
            q.kind,
            q.mac_count,
            o.latency_fs,
            o.moved_bytes,
            o.separate_latency_fs,
            o.separate_energy_fj
        FROM run_operator AS o
        JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
        WHERE o.run_id = r.run_id
        UNION ALL BY NAME
        SELECT
            l.operator_index,
            sum(l.energy_fj) AS energy_fj,
            sum(CASE WHEN a.part = 'compute' THEN l.energy_fj ELSE 0 END) AS compute_fj,
            sum(CASE WHEN a.part = 'memory' THEN l.energy_fj ELSE 0 END) AS memory_fj,
            sum(CASE WHEN a.part = 'control' THEN l.energy_fj ELSE 0 END) AS control_fj,
            sum(CASE WHEN a.part = 'static' THEN l.energy_fj ELSE 0 END) AS static_fj
        FROM ledger_line AS l
        JOIN action AS a ON a.action_id = l.action_id
        WHERE l.run_id = r.run_id
        GROUP BY l.operator_index
    )
    GROUP BY operator_index
) AS p ON p.latency_fs IS NOT NULL;
COMMENT ON VIEW operator_results IS 'Each operator''s exact share of a run, and what it would cost as a kernel of its own';
