-- The promised surface for ad-hoc SQL: names and meaning are part of the contract.

-- Exact femtojoules to the nearest double: a decimal, then the correctly rounded reading of its digits.
CREATE MACRO joules(energy_fj) AS
    CAST(CAST(CAST(energy_fj AS DECIMAL(22, 0)) * CAST('0.000000000000001' AS DECIMAL(16, 15)) AS VARCHAR) AS DOUBLE);

CREATE VIEW hardware AS
SELECT
    v.hardware,
    v.name,
    v.vendor,
    v.architecture,
    v.deployment,
    v.microarchitecture,
    v.unit_name,
    CAST(max(f.value) FILTER (WHERE f.quantity = 'unit_count') AS INTEGER) AS units_total_count,
    max(f.value) FILTER (WHERE f.quantity = 'clock') AS clock_hz,
    max(f.value) FILTER (WHERE f.quantity = 'process_node') AS process_node_nm,
    CAST(max(f.value) FILTER (WHERE f.quantity = 'launch_year') AS INTEGER) AS launch_year,
    v.memory_type,
    max(f.value) FILTER (WHERE f.quantity = 'memory_capacity') AS memory_capacity_bytes,
    max(f.value) FILTER (WHERE f.quantity = 'memory_bandwidth') AS memory_bandwidth_bytes_per_s,
    max(f.value) FILTER (WHERE f.quantity = 'tdp') AS tdp_w,
    max(f.value) FILTER (WHERE f.quantity = 'static_power') AS static_power_w,
    max(f.value) FILTER (WHERE f.quantity = 'price_purchase') AS price_purchase_usd,
    max(f.value) FILTER (WHERE f.quantity = 'price_cloud') AS price_cloud_usd_per_hour,
    v.projection <> '' AS is_projection,
    v.projection,
    v.hardware_digest,
    c.catalogue_digest,
    c.hardware_index
FROM catalogue_entry AS c
JOIN hardware_version AS v ON v.hardware_digest = c.hardware_digest
JOIN hardware_fact AS f ON f.hardware_digest = v.hardware_digest
GROUP BY ALL;
COMMENT ON VIEW hardware IS 'Hardware targets of the current catalogue';

CREATE VIEW hardware_facts AS
SELECT
    v.hardware,
    f.quantity,
    f.value,
    f.unit,
    f.basis,
    f.source,
    f.note,
    f.fact_index,
    f.hardware_digest,
    coalesce(c.hardware_digest = f.hardware_digest, FALSE) AS is_current
FROM hardware_fact AS f
JOIN hardware_version AS v ON v.hardware_digest = f.hardware_digest
LEFT JOIN catalogue_entry AS c ON c.hardware_digest = f.hardware_digest;
COMMENT ON VIEW hardware_facts IS 'One row per number of each hardware, with unit, basis and source; old versions stay, marked by is_current';

CREATE VIEW energy_reference AS
SELECT
    v.hardware,
    a.category,
    a.component,
    a.action,
    a.part,
    a.per,
    e.energy_per_action_fj / 1e15 AS energy_per_action_j,
    e.low_fj / 1e15 AS low_j,
    e.high_fj / 1e15 AS high_j,
    e.basis,
    e.source,
    e.count_formula,
    e.hardware_digest,
    coalesce(c.hardware_digest = e.hardware_digest, FALSE) AS is_current
FROM energy_per_action AS e
JOIN action AS a ON a.action_id = e.action_id
JOIN hardware_version AS v ON v.hardware_digest = e.hardware_digest
LEFT JOIN catalogue_entry AS c ON c.hardware_digest = e.hardware_digest;
COMMENT ON VIEW energy_reference IS 'Energy reference table: one row per hardware, component and action, at the hardware''s process node';

CREATE VIEW operators AS
SELECT
    w.workload_id,
    w.model,
    w.batch,
    o.operator_index,
    o.name,
    o.module_path,
    o.operation,
    o.kind,
    o.aten,
    o.output_shape,
    o.dtype,
    o.mac_count,
    o.elementwise_count,
    o.special_count,
    coalesce(b.input_bytes, 0) AS input_bytes,
    coalesce(b.weight_bytes, 0) AS weight_bytes,
    coalesce(b.output_bytes, 0) AS output_bytes,
    o.gemm_m,
    o.gemm_n,
    o.gemm_k,
    o.gemm_groups,
    o.subgraph_index,
    s.pattern,
    o.is_foldable,
    o.scalars
FROM workload_operator AS o
JOIN workload AS w ON w.workload_id = o.workload_id
JOIN workload_subgraph AS s ON s.workload_id = o.workload_id AND s.subgraph_index = o.subgraph_index
LEFT JOIN (
    SELECT
        workload_id,
        operator_index,
        CAST(sum(byte_count) FILTER (WHERE role = 'input') AS BIGINT) AS input_bytes,
        CAST(sum(byte_count) FILTER (WHERE role = 'weight') AS BIGINT) AS weight_bytes,
        CAST(sum(byte_count) FILTER (WHERE role = 'output') AS BIGINT) AS output_bytes
    FROM workload_access
    GROUP BY workload_id, operator_index
) AS b ON b.workload_id = o.workload_id AND b.operator_index = o.operator_index;
COMMENT ON VIEW operators IS 'Operators of every stored workload, with shapes, counts and bytes at the traced dtype';

CREATE VIEW uncounted AS
SELECT
    w.workload_id,
    w.model,
    w.batch,
    o.operator_index,
    o.name,
    o.aten,
    'no formula for its arithmetic: only its bytes are counted' AS reason
FROM workload_operator AS o
JOIN workload AS w ON w.workload_id = o.workload_id
WHERE o.kind = 'uncounted';
COMMENT ON VIEW uncounted IS 'What could not be counted: a row, never a silent zero';

CREATE VIEW assumptions AS
SELECT n.workload_id, n.model, n.batch, n.assumption
FROM (SELECT workload_id, model, batch, unnest(notes) AS assumption FROM workload) AS n;
COMMENT ON VIEW assumptions IS 'What a trace had to assume: worst cases for what depends on data';

CREATE VIEW energy_ledger AS
SELECT
    l.run_id,
    l.subgraph_index,
    l.operator_index,
    a.category,
    a.component,
    a.action,
    a.part,
    a.per,
    l.action_count,
    e.energy_per_action_fj / 1e15 AS energy_per_action_j,
    l.energy_fj,
    l.energy_fj * CAST('0.000000000000001' AS DECIMAL(16, 15)) AS energy_j,
    e.basis,
    e.source
FROM ledger_line AS l
JOIN run AS r ON r.run_id = l.run_id
JOIN action AS a ON a.action_id = l.action_id
JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id;
COMMENT ON VIEW energy_ledger IS 'One line per run, operator and action: count x energy per action. energy_fj is the stored fact; energy_j is an exact decimal, so its sums are exact in any order';

CREATE VIEW runs AS
SELECT
    r.run_id,
    w.model,
    v.hardware,
    v.architecture,
    r.power_mode,
    r.precision,
    r.batch,
    r.runtime,
    CAST(s.latency_fs AS DOUBLE) / 1e15 AS latency_s,
    joules(e.energy_fj) AS energy_j,
    joules(e.energy_fj) / r.batch AS energy_per_inference_j,
    joules(e.energy_fj) * (CAST(s.latency_fs AS DOUBLE) / 1e15) AS edp_js,
    r.batch / (CAST(s.latency_fs AS DOUBLE) / 1e15) AS throughput_per_s,
    CAST(e.energy_fj AS DOUBLE) / CAST(s.latency_fs AS DOUBLE) AS average_power_w,
    r.weight_bytes + r.activation_bytes AS peak_memory_bytes,
    r.weight_bytes,
    r.activation_bytes,
    o.mac_count,
    2 * o.mac_count / (CAST(s.latency_fs AS DOUBLE) / 1e15) AS attained_ops_per_s,
    r.peak_ops_per_s,
    2 * o.mac_count / (CAST(s.latency_fs AS DOUBLE) / 1e15) / r.peak_ops_per_s AS compute_utilization_fraction,
    s.dram_bytes / (CAST(s.latency_fs AS DOUBLE) / 1e15) / r.memory_bandwidth_bytes_per_s
        AS bandwidth_utilization_fraction,
    2 * o.mac_count / nullif(s.moved_bytes, 0) AS arithmetic_intensity_ops_per_byte,
    CAST((s.unit_fs + s.latency_fs - 1) // nullif(s.latency_fs, 0) AS INTEGER) AS units_used_count,
    r.units_total_count,
    2 * o.mac_count / (CAST(e.energy_fj AS DOUBLE) / 1e15) AS ops_per_j,
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
JOIN (
    SELECT
        run_id,
        sum(latency_fs) AS latency_fs,
        sum(dram_bytes) AS dram_bytes,
        sum(moved_bytes) AS moved_bytes,
        sum(CAST(units_used_count AS HUGEINT) * latency_fs) AS unit_fs
    FROM run_subgraph
    GROUP BY run_id
) AS s ON s.run_id = r.run_id
JOIN (
    SELECT run_id, sum(energy_fj) AS energy_fj
    FROM ledger_line
    GROUP BY run_id
) AS e ON e.run_id = r.run_id
JOIN (
    SELECT p.run_id, CAST(sum(q.mac_count) AS BIGINT) AS mac_count
    FROM run_operator AS p
    JOIN run AS t ON t.run_id = p.run_id
    JOIN workload_operator AS q ON q.workload_id = t.workload_id AND q.operator_index = p.operator_index
    GROUP BY p.run_id
) AS o ON o.run_id = r.run_id
WHERE r.refusal IS NULL;
COMMENT ON VIEW runs IS 'Evaluated runs. Energy and latency are per batch; units_used_count is the mean over time of the units with work, rounded up';

CREATE VIEW refused_runs AS
SELECT r.run_id, w.model, v.hardware, v.architecture, r.power_mode, r.precision, r.batch, r.runtime, r.refusal
FROM run AS r
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
WHERE r.refusal IS NOT NULL;
COMMENT ON VIEW refused_runs IS 'Configurations that the hardware cannot run, and why';

CREATE VIEW energy_parts AS
SELECT
    l.run_id,
    l.subgraph_index,
    l.operator_index,
    sum(l.energy_fj) AS energy_fj,
    sum(CASE WHEN a.part = 'compute' THEN l.energy_fj ELSE 0 END) AS compute_fj,
    sum(CASE WHEN a.part = 'memory' THEN l.energy_fj ELSE 0 END) AS memory_fj,
    sum(CASE WHEN a.part = 'control' THEN l.energy_fj ELSE 0 END) AS control_fj,
    sum(CASE WHEN a.part = 'static' THEN l.energy_fj ELSE 0 END) AS static_fj
FROM ledger_line AS l
JOIN action AS a ON a.action_id = l.action_id
GROUP BY l.run_id, l.subgraph_index, l.operator_index;
COMMENT ON VIEW energy_parts IS 'Energy of each operator of a run by part, exact, in femtojoules';

CREATE VIEW subgraph_results AS
WITH energy AS (
    SELECT
        run_id,
        subgraph_index,
        sum(energy_fj) AS energy_fj,
        sum(compute_fj) AS compute_fj,
        sum(memory_fj) AS memory_fj,
        sum(control_fj) AS control_fj,
        sum(static_fj) AS static_fj
    FROM energy_parts
    GROUP BY run_id, subgraph_index
),
work AS (
    SELECT
        p.run_id,
        p.subgraph_index,
        count(*) AS operator_count,
        CAST(sum(q.mac_count) AS BIGINT) AS mac_count
    FROM run_operator AS p
    JOIN run AS t ON t.run_id = p.run_id
    JOIN workload_operator AS q ON q.workload_id = t.workload_id AND q.operator_index = p.operator_index
    GROUP BY p.run_id, p.subgraph_index
),
part AS (
    SELECT
        s.run_id,
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
        s.bottleneck,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(e.compute_fj, 0) AS compute_fj,
        coalesce(e.memory_fj, 0) AS memory_fj,
        coalesce(e.control_fj, 0) AS control_fj,
        coalesce(e.static_fj, 0) AS static_fj,
        sum(s.latency_fs) OVER (PARTITION BY s.run_id) AS run_latency_fs,
        sum(coalesce(e.energy_fj, 0)) OVER (PARTITION BY s.run_id) AS run_energy_fj
    FROM run_subgraph AS s
    LEFT JOIN energy AS e ON e.run_id = s.run_id AND e.subgraph_index = s.subgraph_index
)
SELECT
    p.run_id,
    w.model,
    v.hardware,
    p.subgraph_index,
    g.name,
    g.pattern AS fusion_pattern,
    k.operator_count,
    k.mac_count,
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
    2 * k.mac_count / nullif(CAST(p.latency_fs AS DOUBLE) / 1e15, 0) / r.peak_ops_per_s
        AS compute_utilization_fraction,
    p.dram_bytes / nullif(CAST(p.latency_fs AS DOUBLE) / 1e15, 0) / r.memory_bandwidth_bytes_per_s
        AS bandwidth_utilization_fraction,
    p.bottleneck
FROM part AS p
JOIN run AS r ON r.run_id = p.run_id
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = p.subgraph_index
JOIN work AS k ON k.run_id = p.run_id AND k.subgraph_index = p.subgraph_index;
COMMENT ON VIEW subgraph_results IS 'Allocations: each subgraph on the hardware of a run. edp_share_js sums to the run''s EDP, edp_js does not';

CREATE VIEW operator_results AS
WITH part AS (
    SELECT
        o.run_id,
        o.subgraph_index,
        o.operator_index,
        o.latency_fs,
        o.moved_bytes,
        o.separate_latency_fs,
        o.separate_energy_fj,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(e.compute_fj, 0) AS compute_fj,
        coalesce(e.memory_fj, 0) AS memory_fj,
        coalesce(e.control_fj, 0) AS control_fj,
        coalesce(e.static_fj, 0) AS static_fj,
        count(*) OVER (PARTITION BY o.run_id, o.subgraph_index) AS subgraph_operator_count,
        sum(o.latency_fs) OVER (PARTITION BY o.run_id) AS run_latency_fs,
        sum(coalesce(e.energy_fj, 0)) OVER (PARTITION BY o.run_id) AS run_energy_fj
    FROM run_operator AS o
    LEFT JOIN energy_parts AS e ON e.run_id = o.run_id AND e.operator_index = o.operator_index
)
SELECT
    p.run_id,
    w.model,
    v.hardware,
    p.subgraph_index,
    p.operator_index,
    q.name,
    q.operation,
    q.kind,
    q.mac_count,
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
FROM part AS p
JOIN run AS r ON r.run_id = p.run_id
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = p.operator_index;
COMMENT ON VIEW operator_results IS 'Each operator''s exact share of a run, and what it would cost as a kernel of its own';

CREATE VIEW measurements AS
SELECT
    measurement_id,
    hardware,
    model,
    precision,
    batch,
    runtime,
    scope,
    latency_s,
    energy_j,
    power_w,
    peak_memory_bytes,
    source,
    conditions
FROM measurement;
COMMENT ON VIEW measurements IS 'What somebody measured';

CREATE VIEW prediction_errors AS
SELECT
    m.measurement_id,
    r.run_id,
    m.hardware,
    m.model,
    m.precision,
    m.batch,
    m.runtime,
    m.latency_s AS measured_latency_s,
    r.latency_s AS predicted_latency_s,
    r.latency_s / m.latency_s - 1e0 AS latency_error_fraction,
    m.energy_j AS measured_energy_j,
    r.energy_j AS predicted_energy_j,
    r.energy_j / m.energy_j - 1e0 AS energy_error_fraction,
    r.average_power_w / m.power_w - 1e0 AS power_error_fraction,
    r.peak_memory_bytes / CAST(m.peak_memory_bytes AS DOUBLE) - 1e0 AS memory_error_fraction
FROM measurement AS m
JOIN runs AS r
    ON r.hardware = m.hardware
    AND r.model = m.model
    AND r.precision = m.precision
    AND r.batch = m.batch
    AND r.runtime = m.runtime
QUALIFY row_number() OVER (PARTITION BY m.measurement_id ORDER BY r.run_id DESC) = 1;
COMMENT ON VIEW prediction_errors IS 'The newest prediction against each measurement, signed: positive is predicted too high';
