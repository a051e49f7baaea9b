-- Public views for ad-hoc SQL. Their names and meanings are stable.

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
    v.unavailable = '' AS is_available,
    v.unavailable,
    v.needs_host,
    v.package,
    v.hardware_digest,
    c.catalogue_digest,
    c.hardware_index
FROM internal.catalogue_entry AS c
JOIN internal.hardware_version AS v ON v.hardware_digest = c.hardware_digest
JOIN internal.hardware_fact AS f ON f.hardware_digest = v.hardware_digest
GROUP BY ALL;
COMMENT ON VIEW hardware IS 'Hardware of the current catalogue';
COMMENT ON COLUMN hardware.name IS 'Display name';
COMMENT ON COLUMN hardware.units_total_count IS 'Number of units';

CREATE VIEW hardware_facts AS
SELECT
    v.hardware,
    f.quantity,
    f.value,
    f.unit,
    f.basis,
    f.source,
    f.note,
    f.sources,
    f.boards,
    f.models,
    f.fact_index,
    f.hardware_digest,
    coalesce(c.hardware_digest = f.hardware_digest, FALSE) AS is_current
FROM internal.hardware_fact AS f
JOIN internal.hardware_version AS v ON v.hardware_digest = f.hardware_digest
LEFT JOIN internal.catalogue_entry AS c ON c.hardware_digest = f.hardware_digest;
COMMENT ON VIEW hardware_facts IS 'One row per number of each hardware, with unit, basis and source; rows of old versions have is_current = false';

CREATE VIEW hardware_links AS
SELECT
    v.hardware,
    l.link,
    l.generation,
    l.connects,
    l.topology,
    CAST(max(f.value) FILTER (WHERE f.quantity = 'link.' || l.link || '.link_count') AS INTEGER) AS link_count,
    CAST(max(f.value) FILTER (WHERE f.quantity = 'link.' || l.link || '.lane_count') AS INTEGER) AS lane_count,
    max(f.value) FILTER (WHERE f.quantity = 'link.' || l.link || '.bandwidth') AS bandwidth_bytes_per_s,
    CAST(max(f.value) FILTER (WHERE f.quantity = 'link.' || l.link || '.domain_size') AS INTEGER) AS domain_size,
    max(f.value) FILTER (WHERE f.quantity = 'link.' || l.link || '.latency') AS latency_s,
    max(f.value) FILTER (WHERE f.quantity = 'link.' || l.link || '.energy') AS energy_per_byte_j,
    max(f.basis) FILTER (WHERE f.quantity = 'link.' || l.link || '.bandwidth') AS basis,
    max(f.source) FILTER (WHERE f.quantity = 'link.' || l.link || '.bandwidth') AS source,
    max(f.note) FILTER (WHERE f.quantity = 'link.' || l.link || '.bandwidth') AS note,
    l.link_index,
    l.hardware_digest,
    coalesce(c.hardware_digest = l.hardware_digest, FALSE) AS is_current
FROM internal.hardware_link AS l
JOIN internal.hardware_version AS v ON v.hardware_digest = l.hardware_digest
JOIN internal.hardware_fact AS f ON f.hardware_digest = l.hardware_digest
LEFT JOIN internal.catalogue_entry AS c ON c.hardware_digest = l.hardware_digest
GROUP BY ALL;
COMMENT ON VIEW hardware_links IS 'Links of each hardware to others of its kind and to its host; rows of old versions have is_current = false';
COMMENT ON COLUMN hardware_links.basis IS 'Basis of the bandwidth';
COMMENT ON COLUMN hardware_links.source IS 'Source of the bandwidth';
COMMENT ON COLUMN hardware_links.note IS 'Note on the bandwidth';
COMMENT ON COLUMN hardware_links.latency_s IS 'Time from one device to the next, as in one step of a collective';
COMMENT ON COLUMN hardware_links.energy_per_byte_j IS 'Energy of sending one byte and receiving one';
COMMENT ON COLUMN hardware_links.bandwidth_bytes_per_s IS 'Bandwidth in one direction, all links of the device together';

CREATE VIEW energy_reference AS
SELECT
    v.hardware,
    a.category,
    a.common_category,
    a.component,
    a.action,
    a.part,
    a.per,
    e.energy_per_action_fj / 1e15 AS energy_per_action_j,
    e.low_fj / 1e15 AS low_j,
    e.high_fj / 1e15 AS high_j,
    e.basis,
    e.source,
    e.sources,
    e.boards,
    e.models,
    d.energy_per_action_fj / 1e15 AS described_energy_per_action_j,
    d.basis AS described_basis,
    d.source AS described_source,
    e.count_formula,
    v.power_mode,
    v.boundary,
    v.changes,
    e.hardware_digest,
    coalesce(e.hardware_digest = coalesce(u.hardware_digest, c.hardware_digest), FALSE) AS is_current
FROM internal.energy_per_action AS e
JOIN internal.action AS a ON a.action_id = e.action_id
JOIN internal.hardware_version AS v ON v.hardware_digest = e.hardware_digest
LEFT JOIN internal.catalogue_entry AS c ON c.hardware = v.hardware
LEFT JOIN internal.hardware_version AS u ON u.hardware_digest = c.usual_digest
LEFT JOIN internal.energy_per_action AS d
    ON d.hardware_digest = coalesce(c.hardware_digest, nullif(v.described_digest, ''), v.hardware_digest)
    AND d.action_id = e.action_id;
COMMENT ON VIEW energy_reference IS 'Energy per action of each hardware version, component and action: as runs use it, and as the hardware file states it. hardware_digest, component and action give the row of a ledger line. Where is_current is true, each action of a chip has one row';
COMMENT ON COLUMN energy_reference.energy_per_action_j IS 'Energy of one action at the highest voltage, as runs of this version use it: with its board, its calibration and the changes of a question';
COMMENT ON COLUMN energy_reference.is_current IS 'True if runs use this version by default: the current catalogue at its default mode and its board, under the built-in calibration';
COMMENT ON COLUMN energy_reference.boundary IS 'Contents of the energy of its runs: board, chip without voltage regulators and unattributed energy, or system with host, chassis and power supply';

-- Idle power that was measured below static power leaves the rest to running clocks. Else idle is assumed a share of
-- static power: on GPUs the median of 43 chips whose files state both (0.18 to 0.85), all of it on chips below 1 W, which
-- sleep, and 0.7 on others (0.3 to 1; packages of three server CPUs idle at 27, 65 and 105 W, 0.30 to 1.1 of a third of
-- their limits, AnandTech). HBM at rest takes 2.8 W a stack of 0.8 TB/s for its interface (Salami et al., DATE 2021) to
-- the 40 W of an A100 (Antepara et al., SC'25): 10 pJ for each byte that it could move (3.5 to 26). GDDR at full clock:
-- 10.4 pJ (7 to 17, RTX 5090 at locked memory clocks), unless it is counted by itself. What is left of idle is divided
-- as estimates of an RTX 5090 are: of 31.5 W, leakage 15 (8 to 22), regulators 5 (3 to 7), links and fans 11.5.
CREATE VIEW static_parts AS
WITH chip AS (
    SELECT
        v.hardware,
        v.hardware_digest,
        v.architecture,
        v.memory_type,
        max(f.value) FILTER (WHERE f.quantity = 'static_power') AS static_w,
        max(f.basis) FILTER (WHERE f.quantity = 'static_power') AS basis,
        max(f.source) FILTER (WHERE f.quantity = 'static_power') AS source,
        max(f.value) FILTER (
            WHERE f.quantity = 'idle_power' AND f.basis IN ('measured', 'published', 'derived')
        ) AS idle_w,
        max(f.source) FILTER (WHERE f.quantity = 'idle_power') AS idle_source,
        max(f.value) FILTER (WHERE f.quantity = 'memory_bandwidth') AS bytes_per_s,
        max(f.value) FILTER (WHERE f.quantity = 'coefficient.standby_energy') AS standby_j,
        max(f.value) FILTER (WHERE f.quantity = 'tdp') AS tdp_w
    FROM internal.hardware_fact AS f
    JOIN internal.hardware_version AS v ON v.hardware_digest = f.hardware_digest
    GROUP BY ALL
), idle AS (
    SELECT
        *,
        coalesce(idle_w < 0.995 * static_w, FALSE) AS is_known,
        static_w * CASE
            WHEN is_known THEN idle_w / static_w
            WHEN tdp_w < 1.0 THEN 1.0
            WHEN architecture = 'gpu' THEN 0.72
            ELSE 0.7
        END AS rest_w,
        static_w * CASE
            WHEN is_known OR tdp_w < 1.0 THEN rest_w / static_w
            WHEN architecture = 'gpu' THEN 0.18
            ELSE 0.3
        END AS low_w,
        static_w * CASE
            WHEN is_known OR tdp_w < 1.0 THEN rest_w / static_w
            WHEN architecture = 'gpu' THEN 0.85
            ELSE 1.0
        END AS high_w
    FROM chip
), memory AS (
    SELECT
        *,
        memory_type LIKE 'GDDR%' AS is_clocked,
        CASE
            WHEN memory_type LIKE 'HBM%' THEN least(0.75 * rest_w, 1e-11 * bytes_per_s)
            WHEN is_clocked AND coalesce(standby_j, 0.0) = 0.0
                THEN least(0.75 * (static_w - rest_w), 1.04e-11 * bytes_per_s)
            ELSE 0.0
        END AS memory_w,
        CASE WHEN is_clocked THEN memory_w ELSE 0.0 END AS clocked_w,
        rest_w - memory_w + clocked_w AS board_w
    FROM idle
)
SELECT
    m.hardware,
    p.part,
    p.power_w,
    p.low_w,
    least(p.high_w, m.static_w) AS high_w,
    p.power_w / m.static_w AS static_fraction,
    CASE WHEN p.is_measured THEN m.basis ELSE 'split' END AS basis,
    CASE WHEN p.is_measured THEN m.source || '; idle: ' || m.idle_source ELSE m.source END AS source,
    m.hardware_digest,
    coalesce(c.hardware_digest = m.hardware_digest, FALSE) AS is_current
FROM memory AS m
LEFT JOIN internal.catalogue_entry AS c ON c.hardware_digest = m.hardware_digest
CROSS JOIN LATERAL (VALUES
    (
        'running clocks', m.static_w - m.rest_w - m.clocked_w, greatest(0.0, m.static_w - m.high_w - 1.6 * m.clocked_w),
        m.static_w - m.low_w - 0.7 * m.clocked_w, m.is_known AND m.clocked_w = 0.0
    ),
    ('memory', m.memory_w, m.memory_w * if(m.is_clocked, 0.7, 0.35), m.memory_w * if(m.is_clocked, 1.6, 2.6), FALSE),
    ('leakage', m.board_w * 15.0 / 31.5, m.board_w * 8.0 / 31.5, m.board_w * 22.0 / 31.5, FALSE),
    ('regulators', m.board_w * 5.0 / 31.5, m.board_w * 3.0 / 31.5, m.board_w * 7.0 / 31.5, FALSE),
    ('links and fans', m.board_w * 11.5 / 31.5, m.board_w * 5.0 / 31.5, m.board_w * 18.0 / 31.5, FALSE)
) AS p (part, power_w, low_w, high_w, is_measured)
WHERE p.power_w > 0.0;
COMMENT ON VIEW static_parts IS 'Parts of the static power of each hardware version, which add up to it: the sum is that of its facts, the division mostly assumed';
COMMENT ON COLUMN static_parts.part IS 'running clocks: what clocks and their voltage add to idle; memory: at rest (HBM) or at full clock (GDDR); leakage; regulators: fixed loss; links and fans';
COMMENT ON COLUMN static_parts.low_w IS 'Lower end of what the part may be';
COMMENT ON COLUMN static_parts.high_w IS 'Upper end of what the part may be';
COMMENT ON COLUMN static_parts.static_fraction IS 'Share of static power: multiplies the energy of chip.static_power of a run';
COMMENT ON COLUMN static_parts.basis IS 'That of static power where idle was measured too; else split: the sum is known, the division assumed';
COMMENT ON COLUMN static_parts.source IS 'Source of the sum, and of the idle power that divides it';

CREATE VIEW metrics AS
SELECT name, label, unit, column_name, per, is_higher_better, missing, metric_index
FROM internal.metric;
COMMENT ON VIEW metrics IS 'Metrics by which runs are compared, ranked and chosen, with the column of each';
COMMENT ON COLUMN metrics.unit IS 'SI unit, or USD';
COMMENT ON COLUMN metrics.per IS 'Amount that one value refers to: batch, inference, second, chip, million inferences';
COMMENT ON COLUMN metrics.label IS 'Display name';
COMMENT ON COLUMN metrics.name IS 'Name of the metric';

CREATE VIEW counted_operators AS
SELECT
    o.workload_id,
    o.operator_index,
    o.subgraph_index,
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
    o.output_element_count,
    o.gemm_m,
    o.gemm_n,
    o.gemm_k,
    o.gemm_groups,
    o.tap_count,
    o.is_foldable,
    o.scalars,
    o.variant,
    o.step_count,
    o.run_count,
    -- A causal mask hides MACs: each of S queries over L keys sees one key fewer than the next query. The product that
    -- gives scores, which scales each element, has the keys in N; the weighted sum has them in K.
    CASE
        WHEN o.mac_count > 0 AND list_contains(string_split(o.variant, ' '), 'causal') THEN
            o.mac_count // nullif(o.gemm_m * o.key_count, 0)
            * (least(o.gemm_m, o.key_count) * (least(o.gemm_m, o.key_count) - 1) // 2)
        ELSE 0
    END AS skipped_mac_count,
    -- an operator with a bias has no other elementwise operations
    CASE WHEN o.has_bias THEN o.elementwise_count ELSE 0 END AS bias_addition_count,
    -- output channels; the GEMM view of a transposed convolution counts each of them once per tap
    CASE
        WHEN NOT o.has_bias THEN 0
        WHEN starts_with(o.operation, 'conv_transpose') THEN o.gemm_n // nullif(o.tap_count, 0) * o.gemm_groups
        ELSE o.gemm_n * o.gemm_groups
    END AS bias_element_count
FROM (
    SELECT
        *,
        kind IN ('conv', 'depthwise_conv', 'grouped_conv', 'linear') AND elementwise_count <> 0 AS has_bias,
        CASE WHEN elementwise_count > 0 THEN gemm_n ELSE gemm_k END AS key_count
    FROM internal.workload_operator
) AS o;
COMMENT ON VIEW counted_operators IS 'Operators of every stored workload, with hidden MACs and biases inferred from shapes and variants';

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
    o.scalars,
    o.variant,
    o.step_count,
    o.run_count,
    o.skipped_mac_count,
    o.bias_addition_count,
    o.bias_element_count
FROM counted_operators AS o
JOIN internal.workload AS w ON w.workload_id = o.workload_id
JOIN internal.workload_subgraph AS s ON s.workload_id = o.workload_id AND s.subgraph_index = o.subgraph_index
LEFT JOIN (
    SELECT
        workload_id,
        operator_index,
        CAST(sum(byte_count) FILTER (WHERE role = 'input') AS BIGINT) AS input_bytes,
        CAST(sum(byte_count) FILTER (WHERE role = 'weight') AS BIGINT) AS weight_bytes,
        CAST(sum(byte_count) FILTER (WHERE role = 'output') AS BIGINT) AS output_bytes
    FROM internal.workload_access
    GROUP BY workload_id, operator_index
) AS b ON b.workload_id = o.workload_id AND b.operator_index = o.operator_index;
COMMENT ON VIEW operators IS 'Operators of every stored workload, with shapes, counts and bytes at the traced dtype';
COMMENT ON COLUMN operators.weight_bytes IS 'Bytes of parameters and buffers read, at the traced dtype';

CREATE VIEW uncounted AS
SELECT
    w.workload_id,
    w.model,
    w.batch,
    o.operator_index,
    o.name,
    o.aten,
    'no formula for its arithmetic: only its bytes are counted' AS reason
FROM internal.workload_operator AS o
JOIN internal.workload AS w ON w.workload_id = o.workload_id
WHERE o.kind = 'uncounted';
COMMENT ON VIEW uncounted IS 'Operators without a formula for their arithmetic, one row each; none is silently counted as zero';

CREATE VIEW assumptions AS
SELECT n.workload_id, n.model, n.batch, n.assumption
FROM (SELECT workload_id, model, batch, unnest(notes) AS assumption FROM internal.workload) AS n;
COMMENT ON VIEW assumptions IS 'Assumptions of traces: worst cases for data-dependent values';

CREATE VIEW caveats AS
SELECT workload_id, 'uncounted' AS kind, aten AS text, count(*) AS operator_count
FROM internal.workload_operator
WHERE kind = 'uncounted'
GROUP BY workload_id, aten
UNION ALL
SELECT workload_id, 'assumed', unnest(notes), NULL
FROM internal.workload
UNION ALL
SELECT workload_id, kind, CASE WHEN kind = 'idle' THEN module_path WHEN line > 0 THEN file || ':' || line ELSE '' END, NULL
FROM internal.workload_finding
WHERE kind IN ('read', 'idle');
COMMENT ON VIEW caveats IS 'Uncounted operators and assumptions of each trace, places where it depends on data, and modules that it did not reach';
COMMENT ON COLUMN caveats.kind IS 'uncounted: only the bytes of these operators are counted; assumed: a worst case replaces a data-dependent value; read: Python code reads data there; idle: a module with weights never ran';
COMMENT ON COLUMN caveats.text IS 'ATen operator, what was assumed and where, file and line of the code that reads data (empty if unknown), or path of the module';
COMMENT ON COLUMN caveats.operator_count IS 'Number of uncounted operators; null for an assumption';

CREATE VIEW run_configurations AS
SELECT
    r.run_id,
    {dimensions},
    {labels},
    v.architecture,
    r.calibration,
    r.refusal,
    v.deployment,
    v.unit_name,
    v.projection <> '' AS is_projection,
    v.unavailable = '' AS is_available,
    v.changes,
    r.units_total_count,
    r.peak_ops_per_s,
    r.memory_bandwidth_bytes_per_s,
    r.weight_bytes + r.activation_bytes AS peak_memory_bytes,
    r.weight_bytes,
    r.activation_bytes,
    r.clock_fraction,
    r.clock_hz,
    r.voltage_factor,
    r.uncapped_power_w,
    r.throughput_limit,
    r.broken_laws,
    r.placement,
    r.has_ledger,
    w.parameter_count,
    r.created_at,
    r.formula_version,
    r.package_version,
    w.torch_version,
    w.torchvision_version,
    w.tracer_version,
    r.run_key,
    w.workload_key,
    r.workload_id,
    r.hardware_digest,
    r.calibration_digest,
    r.is_newest
FROM internal.run AS r
JOIN internal.workload AS w ON w.workload_id = r.workload_id
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest;
COMMENT ON COLUMN run_configurations.clock_hz IS 'Full clock x clock_fraction: the clock under the power cap, in steady state';
COMMENT ON VIEW run_configurations IS 'Every run, evaluated or refused, with its workload and settings';
COMMENT ON COLUMN run_configurations.label IS 'Display name: hardware, precision, batch and runtime';

CREATE VIEW run_settings AS
SELECT
    s.run_id,
    s.one.setting AS setting,
    s.one.value AS value,
    s.position AS setting_index
FROM (
    SELECT
        r.run_id,
        unnest([{settings}]) AS one,
        generate_subscripts([{settings}], 1) AS position
    FROM internal.run AS r
    JOIN internal.workload AS w ON w.workload_id = r.workload_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
) AS s;
COMMENT ON VIEW run_settings IS 'Settings of each run, one row per dimension';
COMMENT ON COLUMN run_settings.setting IS 'Name of the dimension';
COMMENT ON COLUMN run_settings.value IS 'Requested value as text; empty for the default or where it only repeats another dimension';
COMMENT ON COLUMN run_settings.setting_index IS 'Position in the list of dimensions';

CREATE VIEW newest_runs AS
SELECT
    r.run_id,
    r.{dimension},
    r.architecture
FROM run_configurations AS r
SEMI JOIN (
    SELECT max(r.run_id) AS run_id
    FROM internal.run AS r
    JOIN internal.workload AS w ON w.workload_id = r.workload_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    WHERE r.refusal IS NULL AND len(v.changes) = 0
    GROUP BY {newest}
) AS n ON n.run_id = r.run_id;
COMMENT ON VIEW newest_runs IS 'Newest evaluated run of each configuration, over versions of formulas, calibrations and hardware; runs with --set are excluded';

CREATE VIEW refused_runs AS
SELECT
    r.run_id,
    r.{dimension},
    r.architecture,
    r.refusal,
    q.refusal_code,
    q.refusal_values
FROM run_configurations AS r
JOIN internal.run AS q ON q.run_id = r.run_id
WHERE r.refusal IS NOT NULL;
COMMENT ON VIEW refused_runs IS 'Configurations that the hardware cannot run, and why';
COMMENT ON COLUMN refused_runs.refusal IS 'Reason why the hardware cannot run it';
COMMENT ON COLUMN refused_runs.refusal_code IS 'Kind of the reason, such as precision, memory or compiler; other for a reason without a kind';
COMMENT ON COLUMN refused_runs.refusal_values IS 'Values of the reason as JSON, in SI units';

CREATE VIEW run_figures AS
SELECT
    r.run_id,
    r.{dimension},
    r.architecture,
    r.configured_hardware,
    r.precision_label,
    r.label,
    r.series,
    r.deployment,
    r.is_newest,
    x.latency_s,
    x.energy_j,
    x.interval_s,
    {metrics},
    r.throughput_limit,
    r.broken_laws,
    r.placement,
    x.average_power_w,
    r.peak_memory_bytes,
    r.weight_bytes,
    r.activation_bytes,
    x.mac_count,
    2 * x.mac_count / x.interval_s AS attained_ops_per_s,
    r.peak_ops_per_s,
    utilization_of(x.computed_mac_count, x.interval_fs, r.peak_ops_per_s) AS compute_utilization_fraction,
    at_most_whole(x.dram_bytes / x.interval_s / r.memory_bandwidth_bytes_per_s) AS bandwidth_utilization_fraction,
    2 * x.mac_count / nullif(x.moved_bytes, 0) AS arithmetic_intensity_ops_per_byte,
    CASE
        WHEN r.placement = '' THEN
            CAST(least((x.unit_fs + x.interval_fs - 1) // nullif(x.interval_fs, 0), r.units_total_count) AS INTEGER)
        ELSE CAST(len(string_split(r.placement, '+')) AS INTEGER)
    END AS units_used_count,
    r.units_total_count,
    2 * x.mac_count / x.energy_j AS ops_per_j,
    r.clock_fraction,
    r.clock_hz,
    r.voltage_factor,
    r.uncapped_power_w,
    r.is_projection,
    r.is_available,
    r.changes,
    r.created_at,
    r.calibration,
    r.formula_version,
    r.package_version,
    r.torch_version,
    r.torchvision_version,
    r.tracer_version,
    r.workload_key,
    r.hardware_digest,
    r.run_key,
    r.workload_id,
    x.latency_s * exp(-x.latency_half_width) AS latency_low_s,
    x.latency_s * exp(x.latency_half_width) AS latency_high_s,
    x.energy_j * exp(-x.energy_half_width) AS energy_low_j,
    x.energy_j * exp(x.energy_half_width) AS energy_high_j,
    x.average_power_w * exp(-x.power_half_width) AS power_low_w,
    x.average_power_w * exp(x.power_half_width) AS power_high_w,
    r.batch / x.interval_s * exp(-x.latency_half_width) AS throughput_low_per_s,
    r.batch / x.interval_s * exp(x.latency_half_width) AS throughput_high_per_s,
    edp_js * exp(-x.edp_half_width) AS edp_low_js,
    edp_js * exp(x.edp_half_width) AS edp_high_js,
    x.energy_half_width,
    x.energy_basis,
    x.latency_half_width,
    x.latency_basis,
    r.unit_name,
    r.memory_bandwidth_bytes_per_s,
    r.parameter_count,
    r.has_ledger,
    r.refusal
FROM run_configurations AS r
LEFT JOIN (
    SELECT
        *,
        seconds(latency_fs) AS latency_s,
        joules(energy_fj) AS energy_j,
        seconds(interval_fs) AS interval_s,
        fraction(energy_fj, interval_fs) AS average_power_w
    FROM internal.run_total
) AS x ON x.run_id = r.run_id;
COMMENT ON VIEW run_figures IS 'Every run, evaluated or refused, with the columns of runs; results are null for a refused run';
COMMENT ON COLUMN run_figures.units_used_count IS 'Units with work: the mean over time in steady state, rounded up; on a box, devices with a part of the model';
COMMENT ON COLUMN run_figures.clock_hz IS 'Full clock x clock_fraction: the clock under the power cap, in steady state';
COMMENT ON COLUMN run_figures.label IS 'Display name: hardware, precision, batch and runtime';

CREATE VIEW runs AS SELECT * EXCLUDE (refusal) FROM run_figures WHERE energy_j IS NOT NULL;
COMMENT ON VIEW runs IS 'Evaluated runs. Latency, energy and energy x delay are per batch. Energy, utilization and attained rates are those of the steady state, where batches may overlap';
COMMENT ON COLUMN runs.units_used_count IS 'Units with work: the mean over time in steady state, rounded up; on a box, devices with a part of the model';
COMMENT ON COLUMN runs.clock_hz IS 'Full clock x clock_fraction: the clock under the power cap, in steady state';
COMMENT ON COLUMN runs.edp_js IS 'Energy x latency, per batch';
COMMENT ON COLUMN runs.label IS 'Display name: hardware, precision, batch and runtime';

CREATE VIEW run_uncertainty AS
SELECT
    r.run_id,
    r.{dimension},
    r.architecture,
    r.is_newest,
    u.latency_half_width,
    u.energy_half_width,
    u.edp_half_width,
    u.power_half_width,
    u.price_half_width,
    u.latency_own_half_width,
    u.energy_own_half_width,
    u.thin_half_width,
    u.latency_basis,
    u.energy_basis,
    u.latency_group_count,
    u.energy_group_count
FROM run_configurations AS r
JOIN internal.run_total AS u ON u.run_id = r.run_id;
COMMENT ON VIEW run_uncertainty IS 'Half-widths of the 80 % intervals of each evaluated run: a value v with half-width h lies between v exp(-h) and v exp(h)';

CREATE VIEW run_errors AS
SELECT
    u.run_id,
    u.latency_half_width,
    u.energy_half_width,
    u.latency_own_half_width,
    u.energy_own_half_width,
    u.thin_half_width,
    concat_ws(' ', board_of(v.hardware), r.precision, r.weight_precision, v.kernels) AS engine_numbers,
    v.architecture,
    board_of(v.hardware) AS hardware,
    w.source AS model,
    {error_case} AS configuration,
    concat_ws(' ', w.source, w.input_spec, {label}, v.boundary, v.host, v.matmul_precision, CAST(v.changes AS VARCHAR)) AS own
FROM internal.run_total AS u
JOIN internal.run AS r ON r.run_id = u.run_id
JOIN internal.workload AS w ON w.workload_id = r.workload_id
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest;
COMMENT ON VIEW run_errors IS 'Parts of the prediction error of each run: runs with equal values of a column share that part (docs/doubt.md)';
COMMENT ON COLUMN run_errors.thin_half_width IS 'Part that thinly measured numbers of an engine add to times; 0 without an engine';
COMMENT ON COLUMN run_errors.engine_numbers IS 'Key of that part: hardware, precisions and the engine''s kernels';
COMMENT ON COLUMN run_errors.hardware IS 'Board; for a variant such as l4[tdp=60W], the board that it varies';
COMMENT ON COLUMN run_errors.model IS 'Source of the model, e.g. torchvision:resnet18';
COMMENT ON COLUMN run_errors.configuration IS 'Batch, precision and runtime';
COMMENT ON COLUMN run_errors.own IS 'Key of the part that no other run shares: model, hardware and settings, for any version of formulas, calibrations and descriptions';

CREATE VIEW other_units AS
SELECT v.position, v.component, v.unit_name, v.quantity
FROM (
    VALUES
    (1, 'vpu', 'vector unit', 'geometry.core_count'),
    (2, 'vector_engine', 'vector engine', 'geometry.vector_core_count'),
    (3, 'misc_engine', 'misc engine', 'unit_count'),
    (4, 'processor', 'board processor', '')
) AS v (position, component, unit_name, quantity);
COMMENT ON VIEW other_units IS 'Kinds of units for operators that the main units cannot run';
COMMENT ON COLUMN other_units.position IS 'Position; if several of these units work in a subgraph, the last one names it';
COMMENT ON COLUMN other_units.component IS 'Component in the ledger';
COMMENT ON COLUMN other_units.unit_name IS 'Name of one unit';
COMMENT ON COLUMN other_units.quantity IS 'Quantity of hardware_facts with the number of these units; empty for a board processor, of which there is one';

-- The joins are lateral so that a filter on runs reaches the tables: a question about one model reads only the rows of
-- its runs.
CREATE VIEW subgraph_results AS
SELECT
    r.run_id,
    r.{dimension},
    r.architecture,
    r.is_newest,
    p.subgraph_index,
    g.name,
    g.pattern AS fusion_pattern,
    p.operator_count,
    p.mac_count,
    p.moved_bytes,
    p.dram_bytes,
    seconds(p.latency_fs) AS latency_s,
    p.compute_s,
    p.memory_s,
    p.launch_s,
    p.pass_s,
    joules(p.spent.energy_fj) AS energy_j,
    joules(p.spent.compute_fj) AS compute_energy_j,
    joules(p.spent.memory_fj) AS memory_energy_j,
    joules(p.spent.control_fj) AS control_energy_j,
    joules(p.spent.static_fj) AS static_energy_j,
    joules(p.spent.overhead_fj) AS overhead_energy_j,
    fraction(p.spent.overhead_fj, p.spent.energy_fj) AS overhead_fraction,
    joules(p.spent.energy_fj) * seconds(p.latency_fs) AS edp_js,
    edp_share(p.spent.energy_fj, p.latency_fs, t.energy_fj, t.latency_fs) AS edp_share_js,
    coalesce(u.unit_name, r.unit_name) AS unit_name,
    CASE WHEN p.other_position IS NULL THEN p.units_used_count ELSE CAST(coalesce(f.value, 1e0) AS INTEGER) END
        AS units_used_count,
    CASE WHEN p.other_position IS NULL THEN r.units_total_count ELSE CAST(coalesce(f.value, 1e0) AS INTEGER) END
        AS units_total_count,
    p.tile_count,
    p.wave_count,
    p.kernel_count,
    utilization_of(p.computed_mac_count, p.latency_fs, r.peak_ops_per_s) AS compute_utilization_fraction,
    at_most_whole(p.dram_bytes / nullif(greatest(seconds(p.latency_fs), p.memory_s), 0) / r.memory_bandwidth_bytes_per_s)
        AS bandwidth_utilization_fraction,
    p.bottleneck,
    p.executed_mac_count,
    p.tile_count / nullif(p.wave_count * r.units_total_count, 0e0) AS wave_fill_fraction,
    1e0 - p.mac_count / nullif(p.executed_mac_count, 0e0) AS padding_fraction,
    p.pass_bytes,
    p.computed_mac_count
FROM run_configurations AS r
JOIN internal.run_total AS t ON t.run_id = r.run_id
JOIN LATERAL (
    SELECT
        subgraph_index,
        any_value(latency_fs) AS latency_fs,
        any_value(compute_s) AS compute_s,
        any_value(memory_s) AS memory_s,
        any_value(launch_s) AS launch_s,
        any_value(pass_s) AS pass_s,
        any_value(dram_bytes) AS dram_bytes,
        any_value(moved_bytes) AS moved_bytes,
        any_value(pass_bytes) AS pass_bytes,
        any_value(tile_count) AS tile_count,
        any_value(wave_count) AS wave_count,
        any_value(units_used_count) AS units_used_count,
        any_value(kernel_count) AS kernel_count,
        any_value(executed_mac_count) AS executed_mac_count,
        any_value(computed_mac_count) AS computed_mac_count,
        any_value(bottleneck) AS bottleneck,
        any_value(operator_count) AS operator_count,
        any_value(mac_count) AS mac_count,
        CASE WHEN any_value(units_used_count) = 0 THEN any_value(other_position) END AS other_position,
        coalesce(
            any_value(spent),
            {'energy_fj': 0, 'compute_fj': 0, 'memory_fj': 0, 'control_fj': 0, 'static_fj': 0, 'overhead_fj': 0}
        ) AS spent
    FROM (
        SELECT
            s.subgraph_index,
            s.latency_fs,
            s.compute_s,
            s.memory_s,
            s.launch_s,
            s.pass_s,
            s.dram_bytes,
            s.moved_bytes,
            s.pass_bytes,
            s.tile_count,
            s.wave_count,
            s.units_used_count,
            s.kernel_count,
            s.executed_mac_count,
            s.computed_mac_count,
            s.bottleneck
        FROM internal.run_subgraph AS s
        WHERE s.run_id = r.run_id
        UNION ALL BY NAME
        SELECT
            l.subgraph_index,
            energy_by_part(a.part, a.common_category, l.energy_fj) AS spent,
            max(a.other_position) AS other_position
        FROM (
            SELECT e.subgraph_index, e.action_id, sum(e.energy_fj) AS energy_fj
            FROM internal.ledger_line AS e
            WHERE e.run_id = r.run_id
            GROUP BY e.subgraph_index, e.action_id
        ) AS l
        JOIN (
            SELECT c.action_id, c.part, c.common_category, u.position AS other_position
            FROM internal.action AS c
            LEFT JOIN other_units AS u ON u.component = c.component
        ) AS a ON a.action_id = l.action_id
        GROUP BY l.subgraph_index
        UNION ALL BY NAME
        SELECT o.subgraph_index, count(*) AS operator_count, CAST(sum(q.mac_count) AS BIGINT) AS mac_count
        FROM (
            SELECT c.subgraph_index, c.operator_index
            FROM internal.run_operator AS c
            WHERE c.run_id = r.run_id
        ) AS o
        JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
        GROUP BY o.subgraph_index
    )
    GROUP BY subgraph_index
) AS p ON p.latency_fs IS NOT NULL AND p.mac_count IS NOT NULL
JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = p.subgraph_index
LEFT JOIN other_units AS u ON u.position = p.other_position
LEFT JOIN internal.hardware_fact AS f ON f.hardware_digest = r.hardware_digest AND f.quantity = u.quantity;
COMMENT ON VIEW subgraph_results IS 'Each subgraph on the hardware of a run. The values of edp_share_js add up to the EDP of the run; those of edp_js do not. Only runs with has_ledger';
COMMENT ON COLUMN subgraph_results.unit_name IS 'Name of the units that compute it: those of the hardware, or others such as a vector unit';
COMMENT ON COLUMN subgraph_results.units_used_count IS 'Units (of unit_name) with work in the fullest wave';
COMMENT ON COLUMN subgraph_results.units_total_count IS 'Number of the units named by unit_name';
COMMENT ON COLUMN subgraph_results.name IS 'Name of its leading operator';
COMMENT ON COLUMN subgraph_results.latency_s IS 'Latency per batch; the subgraphs add up to the run';
COMMENT ON COLUMN subgraph_results.compute_utilization_fraction IS 'Operations (two per computed MAC) over what the peak allows in the subgraph''s latency';
COMMENT ON COLUMN subgraph_results.bandwidth_utilization_fraction IS 'Off-chip bytes over the subgraph''s latency (or its memory time, if longer) and the published bandwidth';

CREATE VIEW operator_results AS
SELECT
    r.run_id,
    r.{dimension},
    r.architecture,
    r.is_newest,
    p.subgraph_index,
    p.operator_index,
    q.name,
    q.operation,
    q.kind,
    q.mac_count,
    p.moved_bytes,
    seconds(p.latency_fs) AS latency_s,
    joules(p.spent.energy_fj) AS energy_j,
    joules(p.spent.compute_fj) AS compute_energy_j,
    joules(p.spent.memory_fj) AS memory_energy_j,
    joules(p.spent.control_fj) AS control_energy_j,
    joules(p.spent.static_fj) AS static_energy_j,
    joules(p.spent.overhead_fj) AS overhead_energy_j,
    fraction(p.spent.overhead_fj, p.spent.energy_fj) AS overhead_fraction,
    joules(p.spent.energy_fj) * seconds(p.latency_fs) AS edp_js,
    edp_share(p.spent.energy_fj, p.latency_fs, t.energy_fj, t.latency_fs) AS edp_share_js,
    is_merging(r.runtime) AND n.operator_count > 1 AS is_fused,
    joules(p.separate_energy_fj) AS separate_energy_j,
    seconds(p.separate_latency_fs) AS separate_latency_s,
    p.kernel_count,
    p.dram_bytes,
    p.pass_bytes,
    p.separate_kernel_count,
    p.separate_dram_bytes,
    p.separate_moved_bytes,
    p.separate_pass_bytes,
    q.bias_addition_count,
    q.bias_element_count
FROM run_configurations AS r
JOIN internal.run_total AS t ON t.run_id = r.run_id
JOIN LATERAL (
    SELECT
        operator_index,
        any_value(subgraph_index) AS subgraph_index,
        any_value(latency_fs) AS latency_fs,
        any_value(moved_bytes) AS moved_bytes,
        any_value(separate_latency_fs) AS separate_latency_fs,
        any_value(separate_energy_fj) AS separate_energy_fj,
        any_value(kernel_count) AS kernel_count,
        any_value(dram_bytes) AS dram_bytes,
        any_value(pass_bytes) AS pass_bytes,
        any_value(separate_kernel_count) AS separate_kernel_count,
        any_value(separate_dram_bytes) AS separate_dram_bytes,
        any_value(separate_moved_bytes) AS separate_moved_bytes,
        any_value(separate_pass_bytes) AS separate_pass_bytes,
        coalesce(
            any_value(spent),
            {'energy_fj': 0, 'compute_fj': 0, 'memory_fj': 0, 'control_fj': 0, 'static_fj': 0, 'overhead_fj': 0}
        ) AS spent
    FROM (
        SELECT
            o.operator_index,
            o.subgraph_index,
            o.latency_fs,
            o.moved_bytes,
            o.separate_latency_fs,
            o.separate_energy_fj,
            o.kernel_count,
            o.dram_bytes,
            o.pass_bytes,
            o.separate_kernel_count,
            o.separate_dram_bytes,
            o.separate_moved_bytes,
            o.separate_pass_bytes
        FROM internal.run_operator AS o
        WHERE o.run_id = r.run_id AND o.operator_index >= -r.workload_id -- always: two columns of r keep this a look-up
        UNION ALL BY NAME
        SELECT
            l.operator_index,
            energy_by_part(a.part, a.common_category, l.energy_fj) AS spent
        FROM (
            SELECT e.operator_index, e.action_id, sum(e.energy_fj) AS energy_fj
            FROM internal.ledger_line AS e
            WHERE e.run_id = r.run_id
            GROUP BY e.operator_index, e.action_id
        ) AS l
        JOIN internal.action AS a ON a.action_id = l.action_id
        GROUP BY l.operator_index
    )
    GROUP BY operator_index
) AS p ON p.latency_fs IS NOT NULL
JOIN counted_operators AS q ON q.workload_id = r.workload_id AND q.operator_index = p.operator_index
JOIN LATERAL (
    SELECT c.subgraph_index, count(*) AS operator_count
    FROM internal.run_operator AS c
    WHERE c.run_id = r.run_id
    GROUP BY c.subgraph_index
) AS n ON n.subgraph_index = p.subgraph_index;
COMMENT ON VIEW operator_results IS 'Share of each operator in the energy and latency of a run, and its cost as a separate kernel. The shares add up to the run exactly. Only runs with has_ledger';
COMMENT ON COLUMN operator_results.kernel_count IS 'Kernels per batch: 1 for the leading operator of a kernel, else 0';
COMMENT ON COLUMN operator_results.moved_bytes IS 'The operator''s share of the bytes that cross the boundary of its kernel, per batch';
COMMENT ON COLUMN operator_results.latency_s IS 'The operator''s share of the latency of its kernel, per batch; the operators add up to their subgraph';

CREATE VIEW energy_ledger AS
SELECT
    l.run_id,
    r.{dimension},
    r.architecture,
    r.is_newest,
    l.subgraph_index,
    g.name AS subgraph_name,
    g.pattern AS fusion_pattern,
    l.operator_index,
    o.name AS operator_name,
    o.operation,
    o.kind,
    a.category,
    a.common_category,
    a.component,
    a.action,
    a.part,
    a.per,
    l.action_count,
    e.energy_per_action_fj / 1e15 AS energy_per_action_j,
    voltage_factor_of(a.category, a.common_category, a.action, r.voltage_factor) AS line_voltage_factor,
    l.energy_fj AS line_energy_fj,
    l.energy_fj * CAST('0.000000000000001' AS DECIMAL(16, 15)) AS line_energy_j,
    e.basis,
    e.source
FROM internal.ledger_line AS l
JOIN run_configurations AS r ON r.run_id = l.run_id
JOIN internal.action AS a ON a.action_id = l.action_id
JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
LEFT JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = l.subgraph_index
JOIN internal.workload_operator AS o ON o.workload_id = r.workload_id AND o.operator_index = l.operator_index;
COMMENT ON VIEW energy_ledger IS 'One line per run, operator and action: action_count x energy per action x voltage factor, per batch. Only runs with has_ledger. Sums of line_energy_fj and line_energy_j are exact in any order';

CREATE VIEW energy_parts AS
SELECT
    p.run_id,
    r.{dimension},
    r.is_newest,
    p.* EXCLUDE (run_id)
FROM (
    SELECT
        l.run_id,
        l.subgraph_index,
        l.operator_index,
        unnest(energy_by_part(a.part, a.common_category, l.energy_fj))
    FROM internal.ledger_line AS l
    JOIN internal.action AS a ON a.action_id = l.action_id
    GROUP BY l.run_id, l.subgraph_index, l.operator_index
) AS p
JOIN run_configurations AS r ON r.run_id = p.run_id;
COMMENT ON VIEW energy_parts IS 'Energy per batch of each operator of a run by part, and its architectural overhead; exact, in femtojoules. Only runs with has_ledger';

CREATE VIEW part_amounts AS
SELECT
    l.run_id,
    l.subgraph_index,
    l.operator_index,
    'energy' AS amount,
    a.common_category,
    a.component || '.' || a.action AS cause,
    CAST(l.energy_fj AS HUGEINT) AS exact
FROM internal.ledger_line AS l
JOIN internal.action AS a ON a.action_id = l.action_id
UNION ALL
-- launches first; then passes of the runtime, and the rest by the larger of computing and memory
SELECT s.run_id, s.subgraph_index, NULL, 'time', NULL, c.cause, CAST(c.exact AS HUGEINT)
FROM (
    SELECT
        run_id,
        subgraph_index,
        latency_fs,
        compute_s >= memory_s AS is_computing,
        least(latency_fs, CAST(round(launch_s * 1e15) AS BIGINT)) AS launch_fs,
        least(latency_fs - launch_fs, CAST(round(pass_s * 1e15) AS BIGINT)) AS pass_fs
    FROM internal.run_subgraph
) AS s
CROSS JOIN LATERAL (VALUES
    ('launch', s.launch_fs),
    ('compute', CASE WHEN s.is_computing THEN s.latency_fs - s.launch_fs - s.pass_fs ELSE 0 END),
    ('memory', CASE WHEN s.is_computing THEN s.pass_fs ELSE s.latency_fs - s.launch_fs END)
) AS c (cause, exact)
WHERE c.exact > 0;
COMMENT ON VIEW part_amounts IS 'Energy of each operator by action and time of each subgraph by what it waits for, per batch, as integers that sum to the run exactly. Only runs with has_ledger';
COMMENT ON COLUMN part_amounts.operator_index IS 'Position in the execution order of the workload; null for time, which only kernels have';
COMMENT ON COLUMN part_amounts.amount IS 'Kind: energy or time';
COMMENT ON COLUMN part_amounts.common_category IS 'Common category of the action; null for time';
COMMENT ON COLUMN part_amounts.cause IS 'component.action of energy; launch, compute or memory of time';
COMMENT ON COLUMN part_amounts.exact IS 'Femtojoules of energy, femtoseconds of time';

CREATE VIEW placement_events AS
SELECT v.event_index, v.component, v.event, v.per, v.part_of, v.meaning, v.formula
FROM (
    VALUES
    (-7, 'chip', 'cycles', 'clock cycle', '', 'that pass while it runs', 'latency x clock'),
    (-6, 'chip', 'kernels', 'kernel', '', 'that are launched', 'kernels of each subgraph'),
    (-5, 'chip', 'tiles', 'tile', '', 'tiles of the outputs, each computed by one unit', 'tiles of each subgraph'),
    (-4, 'chip', 'waves', 'wave', '', 'rounds of tiles over the units', 'tiles / units, rounded up'),
    (-3, 'chip', 'mac_slots', 'MAC', '', 'MACs of whole tiles', 'tiles x MACs of a tile'),
    (-2, 'chip', 'macs', 'MAC', 'mac_slots', 'MACs that the model needs', 'MACs of its operators'),
    (-1, 'chip', 'padding', 'MAC', 'mac_slots', 'slots without a MAC', 'mac_slots - macs')
) AS v (event_index, component, event, per, part_of, meaning, formula);
COMMENT ON VIEW placement_events IS 'Events of every architecture class, which follow from the placement of subgraphs instead of ledger actions';
COMMENT ON COLUMN placement_events.component IS 'Component at which the event happens';
COMMENT ON COLUMN placement_events.meaning IS 'Description of the event';
COMMENT ON COLUMN placement_events.per IS 'Unit of one event: clock cycle, kernel, tile, wave, MAC';
COMMENT ON COLUMN placement_events.formula IS 'Number of events, as a formula of the placement';

CREATE VIEW events AS
SELECT a.architecture, p.component, p.event, p.per, p.part_of, p.meaning, p.formula, '' AS divisor, p.event_index
FROM placement_events AS p
CROSS JOIN (SELECT DISTINCT architecture FROM internal.event) AS a
UNION ALL
SELECT e.architecture, e.component, e.event, e.per, e.part_of, e.meaning, e.formula, e.divisor, e.event_index
FROM internal.event AS e;
COMMENT ON VIEW events IS 'Events of event_counts on each architecture class, with the formula of their number';
COMMENT ON COLUMN events.component IS 'Component at which the event happens';
COMMENT ON COLUMN events.meaning IS 'Description of the event';
COMMENT ON COLUMN events.per IS 'Unit of one event: instruction, cache line, warp, token ...';

CREATE VIEW event_counts AS
WITH placed AS (
    SELECT
        run_id,
        subgraph_index,
        any_value(latency_fs) AS latency_fs,
        any_value(kernel_count) AS kernel_count,
        any_value(tile_count) AS tile_count,
        any_value(wave_count) AS wave_count,
        any_value(executed_mac_count) AS slot_count,
        CAST(sum(mac_count) AS DOUBLE) AS mac_count
    FROM (
        SELECT
            s.run_id,
            s.subgraph_index,
            s.latency_fs,
            s.kernel_count,
            s.tile_count,
            s.wave_count,
            s.executed_mac_count
        FROM internal.run_subgraph AS s
        UNION ALL BY NAME
        SELECT o.run_id, o.subgraph_index, q.mac_count
        FROM internal.run_operator AS o
        JOIN internal.run AS r ON r.run_id = o.run_id
        JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    )
    GROUP BY run_id, subgraph_index
),
followed AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        unnest([
            {'event': 'cycles', 'event_count': seconds(s.latency_fs) * p.clock_hz * r.clock_fraction},
            {'event': 'kernels', 'event_count': CAST(s.kernel_count AS DOUBLE)},
            {'event': 'tiles', 'event_count': s.tile_count},
            {'event': 'waves', 'event_count': s.wave_count},
            {'event': 'mac_slots', 'event_count': s.slot_count},
            {'event': 'macs', 'event_count': s.mac_count},
            {'event': 'padding', 'event_count': s.slot_count - s.mac_count}
        ], recursive := TRUE)
    FROM placed AS s
    JOIN internal.run AS r ON r.run_id = s.run_id
    JOIN internal.hardware_precision AS p ON p.hardware_digest = r.hardware_digest AND p.precision = r.precision
    WHERE s.latency_fs IS NOT NULL
),
acted AS (
    SELECT
        l.run_id,
        l.subgraph_index,
        l.operator_index,
        r.hardware_digest,
        t.event_index,
        greatest(
            sum(l.action_count * t.factor ORDER BY l.action_id), sum(l.action_count * t.floor ORDER BY l.action_id), 0e0
        ) AS action_count,
        CAST(sum(l.energy_fj) FILTER (WHERE t.is_cost) AS BIGINT) AS energy_fj
    FROM internal.ledger_line AS l
    JOIN internal.run AS r ON r.run_id = l.run_id
    JOIN internal.action AS a ON a.action_id = l.action_id
    JOIN internal.event_term AS t ON t.architecture = a.architecture AND t.component = a.component AND t.action = a.action
    GROUP BY l.run_id, l.subgraph_index, l.operator_index, r.hardware_digest, t.event_index
),
counted AS (
    SELECT
        f.run_id,
        f.subgraph_index,
        CAST(NULL AS INTEGER) AS operator_index,
        e.component,
        e.event,
        e.per,
        e.part_of,
        f.event_count,
        CAST(NULL AS BIGINT) AS event_energy_fj,
        CAST(NULL AS DOUBLE) AS event_energy_j,
        e.event_index
    FROM followed AS f
    JOIN placement_events AS e ON e.event = f.event
    WHERE f.event_count > 0e0
    UNION ALL
    SELECT
        c.run_id,
        c.subgraph_index,
        c.operator_index,
        e.component,
        e.event,
        e.per,
        e.part_of,
        c.action_count / CASE WHEN e.divisor = '' THEN 1e0 ELSE f.value END AS event_count,
        CASE WHEN e.is_priced THEN coalesce(c.energy_fj, 0) END AS event_energy_fj,
        CASE WHEN e.is_priced THEN joules(coalesce(c.energy_fj, 0)) END AS event_energy_j,
        e.event_index
    FROM acted AS c
    JOIN internal.event AS e ON e.event_index = c.event_index
    LEFT JOIN internal.hardware_fact AS f ON f.hardware_digest = c.hardware_digest AND f.quantity = e.divisor
    WHERE c.action_count > 0e0
)
SELECT
    c.run_id,
    r.{dimension},
    r.is_newest,
    c.* EXCLUDE (run_id)
FROM counted AS c
JOIN run_configurations AS r ON r.run_id = c.run_id;
COMMENT ON VIEW event_counts IS 'Number of each event per batch: of operators from ledger actions, of subgraphs from their placement. Sum an event over all its rows of a run for the total. Only runs with has_ledger';
COMMENT ON COLUMN event_counts.component IS 'Component at which the event happens';
COMMENT ON COLUMN event_counts.operator_index IS 'Position in the execution order of the workload; null where the event is counted for the subgraph as a whole';
COMMENT ON COLUMN event_counts.per IS 'Unit of one event: instruction, cache line, warp, token ...';

CREATE VIEW run_overheads AS
SELECT
    l.run_id,
    CAST(sum(CASE WHEN is_overhead(a.common_category) THEN l.energy_fj ELSE 0 END) AS BIGINT) AS overhead_fj,
    joules(sum(CASE WHEN is_overhead(a.common_category) THEN l.energy_fj ELSE 0 END)) AS overhead_energy_j,
    fraction(sum(CASE WHEN is_overhead(a.common_category) THEN l.energy_fj ELSE 0 END), sum(l.energy_fj)) AS overhead_fraction
FROM internal.run_action AS l
JOIN internal.action AS a ON a.action_id = l.action_id
GROUP BY l.run_id;
COMMENT ON VIEW run_overheads IS 'Architectural overhead of each evaluated run: energy that is neither arithmetic, off-chip memory, board, unattributed, host nor static';

CREATE VIEW cost_assumptions AS
SELECT assumption, value, unit, basis, source, note, assumption_index
FROM internal.cost_assumption;
COMMENT ON VIEW cost_assumptions IS 'Default assumptions of a price per inference';
COMMENT ON COLUMN cost_assumptions.assumption IS 'Name of the assumption: utilization, lifetime, hours, pue, electricity or host';
COMMENT ON COLUMN cost_assumptions.unit IS 'Unit of the value: 1, year, h/year or USD/kWh';

CREATE VIEW offers AS
SELECT hardware, way, kind, seller, date, usd, unit, basis, source, note, offer_index
FROM internal.offer;
COMMENT ON VIEW offers IS 'Sellers'' prices of one device; answers use the median over sellers of one kind';
COMMENT ON COLUMN offers.way IS 'Form of payment: rented or bought';
COMMENT ON COLUMN offers.seller IS 'Company that asks the price';
COMMENT ON COLUMN offers.offer_index IS 'Position in the catalogue';
COMMENT ON COLUMN offers.kind IS 'Kind of seller: hyperscaler, cloud, marketplace, reserved or spot; list or retail for a purchase';
COMMENT ON COLUMN offers.date IS 'Day, month or year of the price; empty where its source has none';
COMMENT ON COLUMN offers.usd IS 'Price of one device: per hour if rented, once if bought';
COMMENT ON COLUMN offers.unit IS 'Unit of usd: USD/h if rented, USD if bought';
COMMENT ON COLUMN offers.note IS 'Content of the price and its computation';

CREATE VIEW grid_regions AS
SELECT region, name, year, gco2_per_kwh, basis, source, note, region_index
FROM internal.grid_region;
COMMENT ON VIEW grid_regions IS 'Carbon dioxide per kilowatt-hour of electricity, by grid';
COMMENT ON COLUMN grid_regions.name IS 'Display name';

CREATE VIEW calibrations AS
SELECT
    c.name || ' ' || left(c.calibration_digest, 8) AS calibration,
    c.hardware,
    c.origin,
    c.formula_version,
    c.hardware_generation,
    c.measurement_count,
    c.latency_count,
    c.energy_count,
    c.latency_credibility_fraction,
    c.energy_credibility_fraction,
    c.runtimes,
    c.precisions,
    c.families,
    e.latency_error_fraction,
    e.energy_error_fraction,
    c.data_digest,
    c.hardware_digest,
    c.calibration_digest
FROM internal.calibration AS c
LEFT JOIN (
    SELECT
        calibration_digest,
        arg_max(median_error_fraction, split = 'cross_validated') FILTER (quantity = 'latency')
            AS latency_error_fraction,
        arg_max(median_error_fraction, split = 'cross_validated') FILTER (quantity = 'energy') AS energy_error_fraction
    FROM internal.calibration_error
    WHERE split <> 'uncalibrated' AND runtime IS NULL AND precision IS NULL AND batch IS NULL AND family IS NULL
    GROUP BY calibration_digest
) AS e ON e.calibration_digest = c.calibration_digest;
COMMENT ON VIEW calibrations IS 'Built-in calibrations, and those that runs have used';
COMMENT ON COLUMN calibrations.formula_version IS 'Digest of the formulas used in the fit';
COMMENT ON COLUMN calibrations.hardware_digest IS 'Digest of the description of the fitted hardware, uncalibrated and at its default power mode';

CREATE VIEW calibration_coefficients AS
SELECT
    c.name || ' ' || left(c.calibration_digest, 8) AS calibration,
    c.hardware,
    k.part,
    k.name,
    k.default_value,
    k.value,
    k.value / k.default_value AS ratio,
    k.unit,
    k.data_weight_fraction,
    k.is_determined,
    k.meaning,
    k.coefficient_index,
    c.calibration_digest
FROM internal.calibration_coefficient AS k
JOIN internal.calibration AS c ON c.calibration_digest = k.calibration_digest;
COMMENT ON VIEW calibration_coefficients IS 'Values that each calibration changes: default and calibrated value, with the meaning';
COMMENT ON COLUMN calibration_coefficients.part IS 'time: a coefficient of latency; energy: a factor on energies per action; static: static power';
COMMENT ON COLUMN calibration_coefficients.value IS 'Value with the calibration';
COMMENT ON COLUMN calibration_coefficients.name IS 'Name of the coefficient or energy scale';

CREATE VIEW calibrated_hardware AS
SELECT DISTINCT
    v.hardware,
    r.calibration,
    c.hardware AS fitted_hardware,
    c.hardware <> v.hardware AS is_inherited,
    r.calibration_digest
FROM internal.run AS r
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN internal.calibration AS c ON c.calibration_digest = r.calibration_digest;
COMMENT ON VIEW calibrated_hardware IS 'Hardware of runs and its calibration, fitted to this hardware or inherited from other hardware of its generation';

CREATE VIEW calibration_errors AS
SELECT
    c.name || ' ' || left(c.calibration_digest, 8) AS calibration,
    c.hardware,
    e.quantity,
    e.split,
    e.runtime,
    e.precision,
    e.batch,
    e.family,
    e.measurement_count,
    e.mean_error_fraction,
    e.median_error_fraction,
    e.worst_error_fraction,
    e.rank_correlation,
    e.error_index,
    c.calibration_digest
FROM internal.calibration_error AS e
JOIN internal.calibration AS c ON c.calibration_digest = e.calibration_digest;
COMMENT ON VIEW calibration_errors IS 'Errors of each calibration against its measurements: with class defaults, as fitted, and with each family held out';
COMMENT ON COLUMN calibration_errors.quantity IS 'Measured quantity: latency or energy';
COMMENT ON COLUMN calibration_errors.split IS 'Predictions that are scored: uncalibrated: with class defaults; fitted: with the calibration; cross_validated: of each family, with a fit to the other families';
COMMENT ON COLUMN calibration_errors.runtime IS 'Runtime of the rows; null for all';
COMMENT ON COLUMN calibration_errors.precision IS 'Precision of the rows; null for all';
COMMENT ON COLUMN calibration_errors.batch IS 'Batch of the rows; null for all';
COMMENT ON COLUMN calibration_errors.family IS 'Family of the models of the rows; null for all';

CREATE VIEW measurements AS
SELECT
    measurement_id,
    hardware,
    model,
    precision,
    matmul_precision,
    batch,
    runtime,
    scope,
    boundary,
    idle_power_w,
    latency_s,
    throughput_per_s,
    energy_j,
    power_w,
    wall_power_w,
    device_count,
    peak_memory_bytes,
    source,
    conditions,
    seen,
    stream_count
FROM internal.measurement;
COMMENT ON VIEW measurements IS 'Measurements of models and operators';
COMMENT ON COLUMN measurements.energy_j IS 'Measured energy per batch';
COMMENT ON COLUMN measurements.latency_s IS 'Measured latency of a batch';
COMMENT ON COLUMN measurements.throughput_per_s IS 'Measured inferences per second of one device';
COMMENT ON COLUMN measurements.peak_memory_bytes IS 'Measured peak memory, as the framework reports it';
COMMENT ON COLUMN measurements.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';
COMMENT ON COLUMN measurements.device_count IS 'Devices of the system at the wall plug; null where unknown';
COMMENT ON COLUMN measurements.boundary IS 'Boundary of the measured energy and power: chip, board or system; empty if neither was measured';

CREATE VIEW measurement_splits AS
SELECT
    m.measurement_id,
    coalesce(e.family, CASE WHEN operator_kind(m.model) = '' THEN 'other' ELSE 'operator' END) AS family,
    CASE
        WHEN coalesce(m.seen, '') <> '' THEN 'fitted'
        WHEN bool_or(coalesce(m.seen, '') <> '') OVER (PARTITION BY m.hardware, coalesce(e.family, CASE WHEN operator_kind(m.model) = '' THEN 'other' ELSE 'operator' END))
            THEN 'same family'
        WHEN bool_or(coalesce(m.seen, '') <> '') OVER (PARTITION BY m.hardware) THEN 'unseen family'
        ELSE 'unseen hardware'
    END AS split
FROM internal.measurement AS m
LEFT JOIN internal.model_entry AS e ON e.model = m.model;
COMMENT ON VIEW measurement_splits IS 'Relation of each measurement to the rows that coefficients were fitted to';
COMMENT ON COLUMN measurement_splits.split IS 'Coefficients that were fitted to this row (fitted), to its family on its hardware (same family), to other families on its hardware (unseen family), or to other hardware only (unseen hardware)';

CREATE VIEW estimates AS
SELECT
    e.estimate_id,
    e.model,
    operator_kind(e.model) AS kind,
    v.hardware,
    v.hardware || CASE WHEN e.power_mode = 'default' THEN '' ELSE '@' || e.power_mode END AS configured_hardware,
    v.architecture,
    e.power_mode,
    e.precision,
    v.matmul_precision,
    e.batch,
    e.runtime,
    seconds(e.latency_fs) AS latency_s,
    joules(e.energy_fj) AS energy_j,
    seconds(e.interval_fs) AS interval_s,
    CAST(e.energy_fj AS DOUBLE) / CAST(e.interval_fs AS DOUBLE) AS average_power_w,
    e.weight_bytes + e.activation_bytes AS peak_memory_bytes,
    e.weight_bytes,
    e.activation_bytes,
    e.mac_count,
    2 * e.mac_count / seconds(e.latency_fs) AS attained_ops_per_s,
    e.clock_fraction,
    e.refusal,
    e.calibration,
    e.calibration_digest,
    e.formula_version,
    e.package_version,
    e.created_at,
    e.estimate_key,
    e.hardware_digest,
    e.latency_fs,
    e.interval_fs,
    e.energy_fj
FROM internal.estimate AS e
JOIN internal.hardware_version AS v ON v.hardware_digest = e.hardware_digest;
COMMENT ON VIEW estimates IS 'Time and energy per batch of single operators that were measured, evaluated in bulk without a ledger';
COMMENT ON COLUMN estimates.latency_fs IS 'Latency of a batch, femtoseconds';
COMMENT ON COLUMN estimates.kind IS 'Kind of the operator: gemm, conv2d, attention ...';
COMMENT ON COLUMN estimates.refusal IS 'Reason why the hardware cannot run it; null where it can';
COMMENT ON COLUMN estimates.estimate_id IS 'Number of the estimate';

CREATE VIEW placements AS
SELECT
    p.placement_id,
    p.question_key,
    p.model,
    p.box,
    p.goal,
    p.precision,
    p.batch,
    p.runtime,
    p.devices,
    p.form,
    seconds(p.latency_fs) AS latency_s,
    seconds(p.latency_fs) * exp(-p.latency_half_width) AS latency_low_s,
    seconds(p.latency_fs) * exp(p.latency_half_width) AS latency_high_s,
    seconds(p.copy_fs) AS copy_s,
    seconds(p.period_fs) AS interval_s,
    p.batch / seconds(p.period_fs) AS throughput_per_s,
    p.batch / seconds(p.period_fs) * exp(-p.interval_half_width) AS throughput_low_per_s,
    p.batch / seconds(p.period_fs) * exp(p.interval_half_width) AS throughput_high_per_s,
    joules(p.energy_fj) AS energy_j,
    joules(p.energy_fj) * exp(-p.energy_half_width) AS energy_low_j,
    joules(p.energy_fj) * exp(p.energy_half_width) AS energy_high_j,
    CAST(p.energy_fj AS DOUBLE) / CAST(p.period_fs AS DOUBLE) AS average_power_w,
    p.formula_version,
    p.package_version,
    p.created_at,
    p.energy_fj
FROM internal.placement AS p;
COMMENT ON VIEW placements IS 'A model on one or several devices of a box: alone, split, or as a pipeline';
COMMENT ON COLUMN placements.formula_version IS 'Digest of the formulas of all classes of its devices';
COMMENT ON COLUMN placements.precision IS 'Requested precision; devices without it use another';
COMMENT ON COLUMN placements.energy_j IS 'Energy of the whole box per batch, static energy included';
COMMENT ON COLUMN placements.energy_fj IS 'Energy of the whole box per batch, static energy included, femtojoules';
COMMENT ON COLUMN placements.latency_s IS 'Latency of a batch, copies between devices included';

CREATE VIEW placement_ledger AS
SELECT
    l.placement_id,
    l.line_index,
    l.device,
    l.subgraph_index,
    l.component,
    l.action,
    l.per,
    l.action_count,
    joules(l.energy_per_action_fj) AS energy_per_action_j,
    joules(l.energy_fj) AS line_energy_j,
    l.energy_fj AS line_energy_fj,
    l.basis,
    l.source
FROM internal.placement_line AS l;
COMMENT ON VIEW placement_ledger IS 'One row per line of the ledger of a placement: energy of subgraphs, of copies between devices, and of waiting devices';
COMMENT ON COLUMN placement_ledger.line_energy_j IS 'Energy per batch in joules, the DOUBLE nearest to line_energy_fj';
COMMENT ON COLUMN placement_ledger.line_energy_fj IS 'Stored energy per batch at the voltage of the run, femtojoules';
COMMENT ON COLUMN placement_ledger.subgraph_index IS 'Position of the subgraph in the workload; null for a line of no subgraph';
COMMENT ON COLUMN placement_ledger.energy_per_action_j IS 'Energy of one action at the highest voltage of its device';

CREATE VIEW workload_names AS
SELECT
    n.workload_id,
    unnest(CASE
        WHEN starts_with(n.source, 'torchvision:') AND n.is_own_shape THEN [n.model]
        WHEN regexp_matches(n.source, '^(file|exported|block):') AND n.arguments = '' AND n.inputs = 'example_inputs'
            THEN [n.model]
        WHEN regexp_matches(n.source, '^(torchvision|file|exported|block):') THEN [n.spelled]
        WHEN regexp_matches(n.source, '^(timm|hf):') THEN [n.model, n.spelled]
        ELSE [n.model]
    END) AS measured_model
FROM (
    SELECT
        w.workload_id,
        w.model,
        w.source,
        regexp_extract(w.source, ':[^:()]*\((.*)\)( formulas=.*)?$', 1) AS arguments,
        regexp_replace(w.input_spec, ' ?batch=[0-9]+$', '') AS inputs,
        w.input_shape IN (coalesce(e.input_shape, ''), coalesce(e.input_shape || ' ' || e.input_shape, ' ')) AS is_own_shape,
        -- as name_model of plan/workload.py writes a model with its arguments and inputs
        w.model || '(' || array_to_string(
            list_filter([arguments, replace(inputs, ' ', ', ')], lambda one: one NOT IN ('', 'example_inputs')), ', '
        ) || ')' AS spelled
    FROM internal.workload AS w
    LEFT JOIN internal.model_entry AS e ON e.model = w.model
) AS n;
COMMENT ON VIEW workload_names IS 'Names of the model of a workload in measurements: its plain name if arguments and inputs are the defaults, otherwise its name with both. Models of timm and transformers have both names';
COMMENT ON COLUMN workload_names.measured_model IS 'Name that a measurement of this workload may give to its model';

CREATE VIEW allocators AS
SELECT
    hardware_digest,
    max(value) FILTER (quantity = 'coefficient.allocator_workspace') AS workspace_bytes,
    max(value) FILTER (quantity = 'coefficient.allocator_stream_limit') AS stream_limit
FROM internal.hardware_fact
WHERE quantity IN ('coefficient.allocator_workspace', 'coefficient.allocator_stream_limit')
GROUP BY hardware_digest;
COMMENT ON VIEW allocators IS 'Hardware on which the framework keeps one workspace per used stream, in addition to the memory of a run';
COMMENT ON COLUMN allocators.workspace_bytes IS 'Bytes of the workspace of one stream';
COMMENT ON COLUMN allocators.stream_limit IS 'Maximum streams with a workspace';

CREATE VIEW scored_measurements AS
SELECT
    n.measurement_id,
    n.run_id,
    n.estimate_id,
    n.hardware,
    n.model,
    n.precision,
    n.batch,
    n.runtime,
    n.scope,
    n.boundary,
    n.idle_power_w,
    n.source,
    n.measured_latency_s,
    seconds(n.latency_fs) AS predicted_latency_s,
    n.measured_throughput_per_s,
    n.batch / seconds(n.interval_fs) AS predicted_throughput_per_s,
    n.measured_energy_j,
    CASE WHEN n.left_part > 0e0 THEN n.left_part * joules(n.energy_fj) END AS predicted_energy_j,
    n.measured_power_w,
    n.measured_wall_power_w,
    CAST(n.energy_fj AS DOUBLE) / CAST(n.interval_fs AS DOUBLE) AS predicted_power_w,
    y.predicted_wall_power_w,
    n.measured_memory_bytes,
    CASE
        WHEN o.workspace_bytes IS NULL THEN n.peak_memory_bytes
        WHEN n.stream_count IS NOT NULL
            THEN CAST(n.peak_memory_bytes + least(n.stream_count, o.stream_limit) * o.workspace_bytes AS BIGINT)
    END AS predicted_memory_bytes,
    n.latency_half_width,
    CASE
        WHEN n.left_part > 0e0
            THEN sqrt(
                pow(n.energy_half_width, 2) + (1e0 / pow(n.left_part, 2) - 1e0) * pow(n.power_half_width, 2)
            )
    END AS energy_half_width,
    n.power_half_width,
    y.wall_power_half_width,
    y.wall_power_seen,
    coalesce(e.family, CASE WHEN operator_kind(n.model) = '' THEN 'other' ELSE 'operator' END) AS family,
    n.architecture,
    concat_ws(
        '; ',
        nullif(n.measurement_seen, ''),
        CASE
            WHEN list_contains(c.families, coalesce(e.family, CASE WHEN operator_kind(n.model) = '' THEN 'other' ELSE 'operator' END)) AND c.hardware = split_part(n.hardware, '@', 1)
                THEN 'calibration ' || n.calibration
        END
    ) AS seen,
    n.calibration
FROM (
    SELECT
        r.measurement_id,
        r.run_id,
        CAST(NULL AS INTEGER) AS estimate_id,
        r.boundary,
        r.idle_power_w,
        1e0 - coalesce(r.idle_power_w * CAST(x.interval_fs AS DOUBLE) / CAST(x.energy_fj AS DOUBLE), 0e0) AS left_part,
        r.hardware,
        r.model,
        r.precision,
        r.batch,
        r.runtime,
        r.measured_latency_s,
        r.measured_throughput_per_s,
        r.measured_energy_j,
        r.measured_power_w,
        r.measured_wall_power_w,
        r.measured_memory_bytes,
        r.measurement_seen,
        r.scope,
        r.source,
        r.peak_memory_bytes,
        r.hardware_digest,
        r.stream_count,
        r.calibration,
        r.calibration_digest,
        r.architecture,
        x.latency_fs,
        x.interval_fs,
        x.energy_fj,
        x.latency_half_width,
        x.energy_half_width,
        x.power_half_width
    FROM (
        SELECT
            m.measurement_id,
            r.run_id,
            r.workload_id,
            m.boundary,
            m.idle_power_w,
            m.hardware,
            m.model,
            m.precision,
            m.batch,
            m.runtime,
            m.latency_s AS measured_latency_s,
            m.throughput_per_s AS measured_throughput_per_s,
            m.energy_j AS measured_energy_j,
            m.power_w AS measured_power_w,
            m.wall_power_w AS measured_wall_power_w,
            m.peak_memory_bytes AS measured_memory_bytes,
            m.seen AS measurement_seen,
            m.scope,
            m.source,
            r.peak_memory_bytes,
            r.hardware_digest,
            m.stream_count,
            r.calibration,
            r.calibration_digest,
            r.architecture
        FROM internal.measurement AS m
        JOIN workload_names AS w ON w.measured_model = m.model
        JOIN run_configurations AS r
            ON r.workload_id = w.workload_id
            AND r.configured_hardware = m.hardware
            AND r.hardware = split_part(m.hardware, '@', 1)
            AND r.precision = m.precision
            AND r.weight_precision = m.precision
            AND r.batch = m.batch
            AND r.runtime = m.runtime
        WHERE r.refusal IS NULL AND r.boundary = coalesce(nullif(m.boundary, ''), 'board') AND r.host = '' AND r.matmul_precision = m.matmul_precision AND len(r.changes) = 0 AND operator_kind(m.model) = ''
        QUALIFY r.run_id = max(r.run_id) OVER (
            PARTITION BY m.measurement_id, m.hardware, m.model, m.precision, m.batch, m.runtime, r.calibration
        )
    ) AS r
    JOIN internal.run_total AS x ON x.run_id = r.run_id
    UNION ALL
    SELECT
        m.measurement_id,
        NULL,
        s.estimate_id,
        m.boundary,
        m.idle_power_w,
        1e0 - coalesce(m.idle_power_w * CAST(s.interval_fs AS DOUBLE) / CAST(s.energy_fj AS DOUBLE), 0e0),
        m.hardware,
        m.model,
        m.precision,
        m.batch,
        m.runtime,
        m.latency_s,
        m.throughput_per_s,
        m.energy_j,
        m.power_w,
        m.wall_power_w,
        m.peak_memory_bytes,
        m.seen,
        m.scope,
        m.source,
        s.peak_memory_bytes,
        s.hardware_digest,
        m.stream_count,
        s.calibration,
        s.calibration_digest,
        s.architecture,
        s.latency_fs,
        s.interval_fs,
        s.energy_fj,
        NULL,
        NULL,
        NULL
    FROM internal.measurement AS m
    JOIN estimates AS s
        ON s.configured_hardware = m.hardware
        AND s.model = m.model
        AND s.precision = m.precision
        AND s.matmul_precision = m.matmul_precision
        AND s.batch = m.batch
        AND s.runtime = m.runtime
    WHERE s.refusal IS NULL
) AS n
-- The newest run at the boundary system, with the host shared by as many devices as were measured; the half-width
-- follows the host's share of the power.
LEFT JOIN (
    SELECT
        p.measurement_id,
        p.calibration,
        p.predicted_wall_power_w,
        sqrt(greatest(
            pow(p.power_half_width, 2)
                + coalesce(
                    pow(p.growth_half_width, 2) * (pow(1e0 - p.host_share, 2) - pow(1e0 - p.run_host_share, 2))
                        + pow(p.host_half_width, 2) * (pow(p.host_share, 2) - pow(p.run_host_share, 2)),
                    0e0
                ),
            0e0
        )) AS wall_power_half_width,
        CASE WHEN p.kind_of_source <> '' AND contains(p.sources, p.kind_of_source) THEN 'surroundings at the wall plug' ELSE '' END AS wall_power_seen
    FROM (
        SELECT
            *,
            host_w * board_count / coalesce(device_count, board_count) / predicted_wall_power_w AS host_share,
            host_w / run_power_w AS run_host_share
        FROM (
            SELECT
                n.measurement_id,
                n.device_count,
                n.calibration,
                x.power_half_width,
                f.board_count,
                f.growth_half_width,
                f.host_half_width,
                h.host_w,
                h.sources,
                n.kind_of_source,
                CAST(x.energy_fj AS DOUBLE) / CAST(x.interval_fs AS DOUBLE) AS run_power_w,
                run_power_w + coalesce((f.board_count / n.device_count - 1e0) * h.host_w, 0e0)
                    AS predicted_wall_power_w
            FROM (
                SELECT
                    m.measurement_id,
                    m.device_count,
                    regexp_extract(m.source, '^[A-Za-z]+ [A-Za-z]+') AS kind_of_source,
                    r.run_id,
                    r.hardware_digest,
                    r.calibration
                FROM internal.measurement AS m
                JOIN workload_names AS w ON w.measured_model = m.model
                JOIN run_configurations AS r
                    ON r.workload_id = w.workload_id
                    AND r.configured_hardware = m.hardware
                    AND r.hardware = split_part(m.hardware, '@', 1)
                    AND r.precision = m.precision
                    AND r.weight_precision = m.precision
                    AND r.batch = m.batch
                    AND r.runtime = m.runtime
                WHERE m.wall_power_w IS NOT NULL
                    AND r.refusal IS NULL AND r.boundary = 'system'
                    AND r.host = '' AND r.matmul_precision = m.matmul_precision AND len(r.changes) = 0
                QUALIFY r.run_id = max(r.run_id) OVER (PARTITION BY m.measurement_id, r.calibration)
            ) AS n
            JOIN internal.run_total AS x ON x.run_id = n.run_id
            LEFT JOIN (
                SELECT
                    hardware_digest,
                    max(value) FILTER (quantity = 'coefficient.system_board_count') AS board_count,
                    max(value) FILTER (quantity = 'coefficient.system_growth_half_width') AS growth_half_width,
                    max(value) FILTER (quantity = 'coefficient.system_host_half_width') AS host_half_width
                FROM internal.hardware_fact
                WHERE quantity LIKE 'coefficient.system\_%' ESCAPE '\'
                GROUP BY hardware_digest
            ) AS f ON f.hardware_digest = n.hardware_digest
            LEFT JOIN (
                SELECT
                    e.hardware_digest,
                    joules(max(e.energy_per_action_fj) FILTER (a.component = 'host' AND a.action = 'static_power'))
                        AS host_w,
                    string_agg(e.source, '; ' ORDER BY e.source) AS sources
                FROM internal.energy_per_action AS e
                JOIN internal.action AS a ON a.action_id = e.action_id
                WHERE (a.component = 'host' AND a.action = 'static_power') OR a.component IN ('chassis', 'psu')
                GROUP BY e.hardware_digest
            ) AS h ON h.hardware_digest = n.hardware_digest
        )
    ) AS p
) AS y ON y.measurement_id = n.measurement_id AND y.calibration = n.calibration
LEFT JOIN internal.calibration AS c ON c.calibration_digest = n.calibration_digest
LEFT JOIN internal.model_entry AS e ON e.model = n.model
LEFT JOIN allocators AS o ON o.hardware_digest = n.hardware_digest;
COMMENT ON VIEW scored_measurements IS 'Each measurement with the newest prediction of its configuration under each calibration, at the boundary of the measurement (board if it has none). run_id is set for a model, estimate_id for a single operator';
COMMENT ON COLUMN scored_measurements.boundary IS 'Boundary of the measured energy and power: chip, board or system; empty if neither was measured';
COMMENT ON COLUMN scored_measurements.seen IS 'Coefficients, calibrations and numbers of the system that were fitted to this row or to its family on its hardware; empty for none';
COMMENT ON COLUMN scored_measurements.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';

CREATE VIEW serving_measurements AS
SELECT
    serving_measurement_id,
    source,
    hardware,
    model,
    scope,
    engine,
    engine_version,
    date,
    commit,
    device_count,
    tensor_parallel,
    pipeline_parallel,
    expert_parallel,
    data_parallel,
    other_hardware,
    layer_split,
    weight_precision,
    activation_precision,
    cache_precision,
    prompt_tokens,
    output_tokens,
    batch,
    time_to_first_token_s,
    inter_token_latency_s,
    request_latency_s,
    output_tokens_per_s,
    total_tokens_per_s,
    energy_per_output_token_j,
    energy_per_request_j,
    power_w,
    power_boundary,
    idle_power_w,
    speculative,
    cached_tokens,
    uses_cache,
    context_tokens,
    file_bytes,
    client,
    requests,
    length_spread,
    statistic,
    prompt_kind,
    phases,
    notes,
    seen,
    CASE
        WHEN seen <> '' THEN 'fitted'
        WHEN bool_or(seen <> '') OVER (PARTITION BY hardware, model) THEN 'same family'
        WHEN bool_or(seen <> '') OVER (PARTITION BY hardware) THEN 'unseen family'
        ELSE 'unseen hardware'
    END AS split
FROM internal.serving_measurement;
COMMENT ON VIEW serving_measurements IS 'Measurements of served language models';
COMMENT ON COLUMN serving_measurements.cached_tokens IS 'Tokens of a sequence in the cache before a pass over its prompt; null for none or not stated';
COMMENT ON COLUMN serving_measurements.uses_cache IS 'True if the cache of keys and values is kept from step to step';
COMMENT ON COLUMN serving_measurements.context_tokens IS 'Tokens of a sequence that passes were compiled for; null where not stated';
COMMENT ON COLUMN serving_measurements.file_bytes IS 'Size of the weights as stored; null where not stated';
COMMENT ON COLUMN serving_measurements.client IS 'How the requests in flight start: steady, together or waves; empty if unknown';
COMMENT ON COLUMN serving_measurements.requests IS 'Number of requests over which times are means; NULL if not stated';
COMMENT ON COLUMN serving_measurements.length_spread IS 'Relative spread of lengths around their means, both ways; 0 for equal lengths, NULL if not stated';
COMMENT ON COLUMN serving_measurements.statistic IS 'Statistic of the times between tokens: mean or median';
COMMENT ON COLUMN serving_measurements.phases IS 'separate if prefill and decode have devices of their own, or empty';
COMMENT ON COLUMN serving_measurements.prompt_kind IS 'Sources statement on a prompt of unknown length: short, or empty';
COMMENT ON COLUMN serving_measurements.hardware IS 'Catalogue id, or the name of hardware outside the catalogue';
COMMENT ON COLUMN serving_measurements.model IS 'Name of the model in the source';
COMMENT ON COLUMN serving_measurements.batch IS 'Sequences per call, or the mean number of requests in flight';
COMMENT ON COLUMN serving_measurements.scope IS '{each scope}';
COMMENT ON COLUMN serving_measurements.device_count IS 'Devices in use; null where not stated';
COMMENT ON COLUMN serving_measurements.other_hardware IS 'Other chips that hold a part of the model, joined by +, a processor last; empty for none';
COMMENT ON COLUMN serving_measurements.layer_split IS 'Layers on the hardware and on each other chip, as 20/12; experts 36/23 if the last one has the experts alone, of 23 layers';
COMMENT ON COLUMN serving_measurements.weight_precision IS 'Precision of the weights as stated';
COMMENT ON COLUMN serving_measurements.activation_precision IS 'Precision of activations as stated; empty where not stated or that of the weights';
COMMENT ON COLUMN serving_measurements.cache_precision IS 'Precision of keys and values as stated; empty where not stated or that of the activations';
COMMENT ON COLUMN serving_measurements.power_w IS 'Measured average power of all devices within power_boundary';
COMMENT ON COLUMN serving_measurements.idle_power_w IS 'Idle power of all devices that was subtracted from the measured energies; null if they contain it';
COMMENT ON COLUMN serving_measurements.split IS 'Coefficients that were fitted to this row (fitted), to others of its model on its hardware (same family), to other models on its hardware (unseen family), or to other hardware only (unseen hardware)';
COMMENT ON COLUMN serving_measurements.serving_measurement_id IS 'Number of the measurement';

CREATE VIEW serving_predictions AS
SELECT
    p.serving_measurement_id,
    p.quantity,
    p.measured,
    p.predicted,
    CASE WHEN p.predicted IS NULL THEN coalesce(p.refusal, 'its ' || p.quantity || ' is not predicted') END AS refusal,
    CASE WHEN p.predicted IS NULL THEN coalesce(p.refusal_code, 'not predicted: ' || p.quantity) END AS refusal_code,
    p.architecture,
    p.vendor,
    p.engine,
    p.work,
    p.calibration,
    p.formula_version,
    p.package_version,
    p.created_at,
    serving_half_width(
        p.quantity, p.vendor, p.engine, split_part(p.hardware, '@', 1), p.scope, 1e0 / p.left_part, of_architecture := p.architecture,
        thin := CASE WHEN p.quantity = 'time_to_first_token_s' THEN p.prompt_half_width ELSE p.token_half_width END
    ) AS half_width,
    CASE WHEN p.quantity = 'time_to_first_token_s' THEN p.prompt_half_width ELSE p.token_half_width END AS thin_half_width
FROM (
    SELECT
        n.serving_measurement_id,
        n.left_part,
        n.prompt_half_width,
        n.token_half_width,
        m.scope,
        unnest([
            {'quantity': 'time_to_first_token_s', 'measured': m.time_to_first_token_s, 'predicted': n.time_to_first_token_s},
            {'quantity': 'inter_token_latency_s', 'measured': m.inter_token_latency_s, 'predicted': n.inter_token_latency_s},
            {'quantity': 'request_latency_s', 'measured': m.request_latency_s, 'predicted': n.request_latency_s},
            {'quantity': 'output_tokens_per_s', 'measured': m.output_tokens_per_s, 'predicted': n.output_tokens_per_s},
            {'quantity': 'total_tokens_per_s', 'measured': m.total_tokens_per_s, 'predicted': n.total_tokens_per_s},
            {'quantity': 'energy_per_output_token_j', 'measured': m.energy_per_output_token_j, 'predicted': n.left_part * n.energy_per_output_token_j},
            {'quantity': 'energy_per_request_j', 'measured': m.energy_per_request_j, 'predicted': n.left_part * n.energy_per_request_j},
            {'quantity': 'power_w', 'measured': m.power_w, 'predicted': n.power_w}
        ], recursive := TRUE),
        n.refusal,
        n.refusal_code,
        n.architecture,
        n.vendor,
        n.engine,
        n.work,
        m.hardware,
        m.scope,
        n.calibration,
        n.formula_version,
        n.package_version,
        n.created_at
    FROM (
        SELECT
            n.*,
            nullif(greatest(1e0 - coalesce(m.idle_power_w / n.power_w, 0e0), 0e0), 0e0) AS left_part
        FROM internal.serving_prediction AS n
        JOIN internal.serving_measurement AS m ON m.serving_measurement_id = n.serving_measurement_id
    ) AS n
    JOIN internal.serving_measurement AS m ON m.serving_measurement_id = n.serving_measurement_id
) AS p
WHERE p.measured IS NOT NULL;
COMMENT ON VIEW serving_predictions IS 'Each measured quantity of a served language model with its newest prediction; null with a refusal where there is none';
COMMENT ON COLUMN serving_predictions.half_width IS 'Half-width of the 80 % interval of ln(measured / predicted)';
COMMENT ON COLUMN serving_predictions.thin_half_width IS 'Part that thinly measured numbers of the engine add to times';
COMMENT ON COLUMN serving_predictions.quantity IS 'Measured quantity: time_to_first_token_s, inter_token_latency_s, request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j, power_w';
COMMENT ON COLUMN serving_predictions.refusal IS 'Reason why the quantity is not predicted; null if it is';
COMMENT ON COLUMN serving_predictions.refusal_code IS 'Kind of the reason; other for a reason without a kind';
COMMENT ON COLUMN serving_predictions.engine IS 'Engine and release that the prediction assumes; empty for none';
COMMENT ON COLUMN serving_predictions.vendor IS 'Manufacturer of the hardware; empty for hardware outside the catalogue';

CREATE VIEW serving_refusals AS
SELECT
    p.serving_measurement_id,
    m.source,
    m.hardware,
    m.model,
    m.engine,
    m.scope,
    m.batch,
    p.quantity,
    p.measured,
    p.refusal,
    p.refusal_code
FROM serving_predictions AS p
JOIN internal.serving_measurement AS m ON m.serving_measurement_id = p.serving_measurement_id
WHERE p.refusal IS NOT NULL;
COMMENT ON VIEW serving_refusals IS 'Measured quantities of served language models that are not predicted, and why';
COMMENT ON COLUMN serving_refusals.quantity IS 'Measured quantity: time_to_first_token_s, inter_token_latency_s, request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j, power_w';
COMMENT ON COLUMN serving_refusals.batch IS 'Sequences per call, or the mean number of requests in flight';
COMMENT ON COLUMN serving_refusals.refusal IS 'Reason why the quantity is not predicted';
COMMENT ON COLUMN serving_refusals.refusal_code IS 'Kind of the reason; other for a reason without a kind';

CREATE VIEW calibrated_prediction_errors AS
SELECT
    p.measurement_id,
    p.serving_measurement_id,
    p.run_id,
    p.estimate_id,
    p.hardware,
    p.model,
    p.precision,
    p.batch,
    p.runtime,
    p.engine,
    p.scope,
    p.source,
    p.quantity,
    p.measured,
    p.predicted,
    p.predicted / p.measured - 1e0 AS error_fraction,
    p.predicted * exp(-p.half_width) AS low,
    p.predicted * exp(p.half_width) AS high,
    p.family,
    p.architecture,
    concat_ws('; ', nullif(p.seen, ''), nullif(p.quantity_seen, '')) AS seen,
    p.calibration
FROM (
    SELECT
        measurement_id,
        NULL AS serving_measurement_id,
        run_id,
        estimate_id,
        hardware,
        model,
        precision,
        CAST(batch AS DOUBLE) AS batch,
        runtime,
        '' AS engine,
        scope,
        source,
        family,
        architecture,
        seen,
        calibration,
        unnest([
            {
                'quantity': 'latency_s',
                'measured': measured_latency_s,
                'predicted': predicted_latency_s,
                'half_width': latency_half_width,
                'quantity_seen': ''
            },
            {
                'quantity': 'throughput_per_s',
                'measured': measured_throughput_per_s,
                'predicted': predicted_throughput_per_s,
                'half_width': latency_half_width,
                'quantity_seen': ''
            },
            {
                'quantity': 'energy_j',
                'measured': measured_energy_j,
                'predicted': predicted_energy_j,
                'half_width': energy_half_width,
                'quantity_seen': ''
            },
            {
                'quantity': 'power_w',
                'measured': measured_power_w,
                'predicted': predicted_power_w,
                'half_width': power_half_width,
                'quantity_seen': ''
            },
            {
                'quantity': 'wall_power_w',
                'measured': measured_wall_power_w,
                'predicted': predicted_wall_power_w,
                'half_width': wall_power_half_width,
                'quantity_seen': wall_power_seen
            },
            {
                'quantity': 'peak_memory_bytes',
                'measured': CAST(measured_memory_bytes AS DOUBLE),
                'predicted': CAST(predicted_memory_bytes AS DOUBLE),
                'half_width': NULL,
                'quantity_seen': ''
            }
        ], recursive := TRUE)
    FROM scored_measurements
    UNION ALL BY NAME
    SELECT
        p.serving_measurement_id,
        m.hardware,
        m.model,
        m.weight_precision AS precision,
        m.batch,
        m.engine,
        m.scope,
        m.source,
        'served' AS family,
        p.architecture,
        m.seen,
        p.calibration,
        p.quantity,
        p.measured,
        p.predicted,
        p.half_width
    FROM serving_predictions AS p
    JOIN internal.serving_measurement AS m ON m.serving_measurement_id = p.serving_measurement_id
) AS p
WHERE p.measured IS NOT NULL AND p.predicted IS NOT NULL;
COMMENT ON VIEW calibrated_prediction_errors IS 'Newest prediction under each calibration compared with each measured quantity';
COMMENT ON COLUMN calibrated_prediction_errors.quantity IS 'Measured quantity: latency_s, throughput_per_s, energy_j, power_w, wall_power_w, peak_memory_bytes; for served models time_to_first_token_s, inter_token_latency_s, request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j, power_w';
COMMENT ON COLUMN calibrated_prediction_errors.batch IS 'Samples per batch; for served models, sequences per call or the mean number of requests in flight';
COMMENT ON COLUMN calibrated_prediction_errors.precision IS 'Precision of weights, activations and GEMMs; for served models, of the weights as stated';
COMMENT ON COLUMN calibrated_prediction_errors.measurement_id IS 'Number of the measurement; null for served models';
COMMENT ON COLUMN calibrated_prediction_errors.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';
COMMENT ON COLUMN calibrated_prediction_errors.seen IS 'Coefficients, calibrations and numbers of the system that were fitted to this row or to its family on its hardware; empty for none';

CREATE VIEW prediction_errors AS
SELECT
    measurement_id,
    serving_measurement_id,
    run_id,
    estimate_id,
    hardware,
    model,
    precision,
    batch,
    runtime,
    engine,
    scope,
    source,
    quantity,
    measured,
    predicted,
    error_fraction,
    low,
    high,
    family,
    architecture,
    seen,
    calibration
FROM calibrated_prediction_errors
QUALIFY row_number() OVER (
    PARTITION BY measurement_id, serving_measurement_id, quantity ORDER BY run_id DESC, estimate_id DESC
) = 1;
COMMENT ON VIEW prediction_errors IS 'Newest prediction compared with each measured quantity';
COMMENT ON COLUMN prediction_errors.quantity IS 'Measured quantity: latency_s, throughput_per_s, energy_j, power_w, wall_power_w, peak_memory_bytes; for served models time_to_first_token_s, inter_token_latency_s, request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j, power_w';
COMMENT ON COLUMN prediction_errors.batch IS 'Samples per batch; for served models, sequences per call or the mean number of requests in flight';
COMMENT ON COLUMN prediction_errors.precision IS 'Precision of weights, activations and GEMMs; for served models, of the weights as stated';
COMMENT ON COLUMN prediction_errors.measurement_id IS 'Number of the measurement; null for served models';
COMMENT ON COLUMN prediction_errors.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';
COMMENT ON COLUMN prediction_errors.seen IS 'Coefficients, calibrations and numbers of the system that were fitted to this row or to its family on its hardware; empty for none';

CREATE VIEW energy_errors AS
WITH single AS (
    SELECT
        s.*,
        coalesce(s.batch / s.measured_throughput_per_s, s.measured_latency_s) AS measured_s,
        CASE
            WHEN s.measured_throughput_per_s IS NULL THEN s.predicted_latency_s
            ELSE s.batch / s.predicted_throughput_per_s
        END AS predicted_s
    FROM scored_measurements AS s
    QUALIFY row_number() OVER (PARTITION BY s.measurement_id ORDER BY s.run_id DESC, s.estimate_id DESC) = 1
),
served AS (
    SELECT
        m.*,
        p.architecture,
        p.calibration,
        p.predicted,
        p.measured,
        p.half_width,
        CASE WHEN p.quantity = 'power_w' THEN 'power' ELSE 'energy' END AS quantity,
        p.quantity AS unit
    FROM serving_predictions AS p
    JOIN internal.serving_measurement AS m ON m.serving_measurement_id = p.serving_measurement_id
    WHERE p.quantity IN ('energy_per_output_token_j', 'energy_per_request_j', 'power_w') AND p.predicted IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY p.serving_measurement_id
        ORDER BY list_position(['energy_per_output_token_j', 'energy_per_request_j', 'power_w'], p.quantity)
    ) = 1
)
SELECT
    e.measurement_id,
    e.serving_measurement_id,
    e.run_id,
    e.architecture,
    e.hardware,
    e.boundary,
    e.subject,
    e.quantity,
    e.model,
    e.precision,
    e.batch,
    e.source,
    e.measured,
    e.predicted,
    e.predicted / e.measured - 1e0 AS error_fraction,
    e.half_width,
    e.predicted * exp(-e.half_width) AS low,
    e.predicted * exp(e.half_width) AS high,
    e.idle_power_w,
    e.seen,
    e.calibration
FROM (
    SELECT
        measurement_id,
        NULL AS serving_measurement_id,
        run_id,
        architecture,
        hardware,
        CASE WHEN at_plug THEN 'system' ELSE boundary END AS boundary,
        CASE family WHEN 'operator' THEN 'operators' ELSE 'models' END AS subject,
        CASE WHEN measured_j IS NULL THEN 'power' ELSE 'energy' END AS quantity,
        model,
        precision,
        CAST(batch AS DOUBLE) AS batch,
        source,
        coalesce(measured_j, measured_w) AS measured,
        CASE WHEN measured_j IS NULL THEN predicted_w ELSE predicted_j END AS predicted,
        CASE WHEN measured_j IS NULL THEN width_w ELSE width_j END AS half_width,
        idle_power_w,
        concat_ws('; ', nullif(seen, ''), nullif(quantity_seen, '')) AS seen,
        calibration
    FROM (
        SELECT
            one.*,
            unnest([
                {
                    'at_plug': FALSE,
                    'measured_w': measured_power_w,
                    'measured_j': coalesce(measured_energy_j, measured_power_w * measured_s),
                    'predicted_w': predicted_power_w,
                    'predicted_j': CASE
                        WHEN measured_energy_j IS NULL THEN predicted_power_w * predicted_s
                        ELSE predicted_energy_j
                    END,
                    'width_w': power_half_width,
                    'width_j': energy_half_width,
                    'quantity_seen': ''
                },
                {
                    'at_plug': TRUE,
                    'measured_w': measured_wall_power_w,
                    'measured_j': measured_wall_power_w * measured_s,
                    'predicted_w': predicted_wall_power_w,
                    'predicted_j': predicted_wall_power_w * predicted_s,
                    'width_w': wall_power_half_width,
                    'width_j': sqrt(pow(latency_half_width, 2) + pow(wall_power_half_width, 2)),
                    'quantity_seen': wall_power_seen
                }
            ], recursive := TRUE)
        FROM (SELECT * FROM single) AS one
    )
    WHERE coalesce(measured_j, measured_w) IS NOT NULL
    UNION ALL
    SELECT
        NULL,
        serving_measurement_id,
        NULL,
        architecture,
        hardware,
        boundary_of(power_boundary),
        'served',
        quantity,
        model,
        weight_precision,
        batch,
        source,
        measured,
        predicted,
        half_width,
        idle_power_w,
        seen,
        calibration
    FROM served
) AS e
WHERE e.predicted IS NOT NULL;
COMMENT ON VIEW energy_errors IS 'Measured energy compared with the newest prediction at the boundary of the measurement; power where no time was measured';
COMMENT ON COLUMN energy_errors.boundary IS 'Boundary of the measurement: chip, board or system';
COMMENT ON COLUMN energy_errors.subject IS 'Subject of the measurement: models, operators or served';
COMMENT ON COLUMN energy_errors.quantity IS 'energy (J per batch; for served models J per output token, or per request where that was not measured) or power (W)';
COMMENT ON COLUMN energy_errors.measured IS 'Measured energy or power, without idle_power_w if that is given';
COMMENT ON COLUMN energy_errors.half_width IS 'Half-width of the 80 % interval of ln(measured / predicted); null for single operators';
COMMENT ON COLUMN energy_errors.batch IS 'Samples per batch; for served models, sequences per call or the mean number of requests in flight';
COMMENT ON COLUMN energy_errors.precision IS 'Precision of weights, activations and GEMMs; for served models, of the weights as stated';
COMMENT ON COLUMN energy_errors.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';
COMMENT ON COLUMN energy_errors.measurement_id IS 'Number of the measurement; null for served models';
COMMENT ON COLUMN energy_errors.predicted IS 'Predicted energy or power, without idle_power_w if that is given';
COMMENT ON COLUMN energy_errors.seen IS 'Coefficients, calibrations and numbers of the system that were fitted to this row or to its family on its hardware; empty for none';

CREATE VIEW operator_measurements AS
SELECT
    hardware,
    model,
    precision,
    matmul_precision,
    batch,
    runtime,
    operation,
    shapes,
    operator_count,
    kernels,
    call_count,
    device_time_s,
    is_overlapping,
    source,
    conditions,
    seen
FROM internal.operator_measurement;
COMMENT ON VIEW operator_measurements IS 'Measured device time of the operators inside models, by operation and shapes, and of kernels without an operator';
COMMENT ON COLUMN operator_measurements.operation IS 'Operation as in operator_signatures; empty for kernels without an operator of the trace';
COMMENT ON COLUMN operator_measurements.operator_count IS 'Operators of the trace with this operation and these shapes';
COMMENT ON COLUMN operator_measurements.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';

-- A profile lists shapes as stored in memory, so operators that differ only in other properties share a row. It omits
-- the inputs of a concatenation, and it has one kernel for an attention.
CREATE VIEW operator_signatures AS
SELECT
    o.workload_id,
    o.operator_index,
    CASE
        WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN 'scaled_dot_product_attention'
        ELSE o.operation
    END AS operation,
    CASE
        WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN regexp_replace(o.output_shape, 'x[0-9]+$', '')
        WHEN o.operation = 'cat' THEN ''
        WHEN o.operation IN ('reshape', 'contiguous', 'clone') THEN o.copied_shape || ' -> ' || o.output_shape
        ELSE concat(p.shapes, CASE WHEN p.shapes IS NULL THEN '' ELSE ' -> ' END, o.output_shape)
    END AS shapes,
    CASE WHEN o.aten LIKE 'aten.scaled_dot_product_attention%' THEN 'attention' ELSE o.kind END AS kind,
    o.copied_shape
FROM (
    SELECT
        workload_id,
        operator_index,
        operation,
        kind,
        aten,
        output_shape,
        CASE
            WHEN lag(kind) OVER before = 'view' AND lag(output_element_count) OVER before = output_element_count
                THEN lag(output_shape) OVER before
            ELSE output_shape
        END AS copied_shape
    FROM internal.workload_operator
    WINDOW before AS (PARTITION BY workload_id ORDER BY operator_index ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS o
LEFT JOIN (
    SELECT a.workload_id, a.operator_index, string_agg(t.shape, ' ' ORDER BY a.access_index) AS shapes
    FROM internal.workload_access AS a
    JOIN internal.workload_tensor AS t ON t.workload_id = a.workload_id AND t.tensor_index = a.tensor_index
    WHERE a.role <> 'output'
    GROUP BY a.workload_id, a.operator_index
) AS p ON p.workload_id = o.workload_id AND p.operator_index = o.operator_index;
COMMENT ON VIEW operator_signatures IS 'Operation and shapes by which a profile distinguishes the operators of a workload';
COMMENT ON COLUMN operator_signatures.kind IS 'Kind of operator; attention for the three operators of an attention';

CREATE VIEW operator_prediction_errors AS
WITH newest AS (
    SELECT
        m.hardware,
        m.model,
        m.precision,
        m.matmul_precision,
        m.batch,
        m.runtime,
        r.run_id,
        r.workload_id,
        r.calibration,
        r.architecture,
        coalesce(f.value / c.value, 0e0) * coalesce(g.value, 1e0) AS kernel_gap_s
    FROM (
        SELECT DISTINCT hardware, model, precision, matmul_precision, batch, runtime
        FROM internal.operator_measurement
    ) AS m
    JOIN workload_names AS w ON w.measured_model = m.model
    JOIN run_configurations AS r
        ON r.workload_id = w.workload_id
        AND r.configured_hardware = m.hardware
        AND r.hardware = split_part(m.hardware, '@', 1)
        AND r.precision = m.precision
        AND r.weight_precision = m.precision
        AND r.batch = m.batch
        AND r.runtime = m.runtime
    LEFT JOIN internal.hardware_fact AS f
        ON f.hardware_digest = r.hardware_digest AND f.quantity = 'coefficient.gap_clocks'
    LEFT JOIN internal.hardware_fact AS c
        ON c.hardware_digest = r.hardware_digest AND c.quantity = 'clock_boost'
    LEFT JOIN internal.hardware_fact AS g
        ON g.hardware_digest = r.hardware_digest AND g.quantity = 'coefficient.launch_time_scale'
    WHERE r.refusal IS NULL AND r.boundary = 'board' AND r.host = '' AND r.matmul_precision = m.matmul_precision AND len(r.changes) = 0
    QUALIFY r.run_id = max(r.run_id) OVER (PARTITION BY m.hardware, m.model, m.precision, m.matmul_precision, m.batch, m.runtime)
),
predicted AS (
    SELECT
        n.run_id,
        s.operation,
        s.shapes,
        s.kind,
        count(*) AS operator_count,
        seconds(sum(o.latency_fs)) - count(*) * any_value(n.kernel_gap_s) AS device_time_s
    FROM newest AS n
    JOIN operator_signatures AS s ON s.workload_id = n.workload_id
    JOIN internal.run_operator AS o ON o.run_id = n.run_id AND o.operator_index = s.operator_index
    GROUP BY n.run_id, s.operation, s.shapes, s.kind
)
SELECT
    n.run_id,
    m.hardware,
    m.model,
    m.precision,
    m.batch,
    m.runtime,
    p.kind,
    m.operation,
    m.shapes,
    m.operator_count,
    m.kernels,
    m.call_count,
    m.device_time_s AS measured_s,
    p.device_time_s AS predicted_s,
    p.device_time_s / m.device_time_s - 1e0 AS error_fraction,
    m.device_time_s / m.operator_count AS measured_per_operator_s,
    m.is_overlapping,
    coalesce(e.family, 'other') AS family,
    n.architecture,
    m.seen,
    n.calibration
FROM internal.operator_measurement AS m
JOIN newest AS n
    ON n.hardware = m.hardware
    AND n.model = m.model
    AND n.precision = m.precision
    AND n.matmul_precision = m.matmul_precision
    AND n.batch = m.batch
    AND n.runtime = m.runtime
JOIN predicted AS p
    ON p.run_id = n.run_id
    AND p.operation = m.operation
    AND p.shapes = m.shapes
    AND p.operator_count = m.operator_count
LEFT JOIN internal.model_entry AS e ON e.model = m.model;
COMMENT ON VIEW operator_prediction_errors IS 'Measured device time of operators inside models compared with the newest prediction, both without the gaps between kernels';
COMMENT ON COLUMN operator_prediction_errors.hardware IS 'Catalogue id, with @MODE where the power mode is not the default';
