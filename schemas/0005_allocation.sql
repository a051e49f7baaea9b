-- What a discrete allocation wastes: slots that pad tiles to their shape, and units without a tile in the last wave.

ALTER TABLE run_subgraph ADD COLUMN executed_mac_count DOUBLE;
COMMENT ON COLUMN run_subgraph.executed_mac_count IS
    'MAC slots of its tiles, padding included, at least its MACs; null for a run stored before schema 5';

CREATE OR REPLACE VIEW subgraph_results AS
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
        s.executed_mac_count,
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
    p.bottleneck,
    p.executed_mac_count,
    p.tile_count / nullif(p.wave_count * r.units_total_count, 0e0) AS wave_fill_fraction,
    1e0 - k.mac_count / nullif(p.executed_mac_count, 0e0) AS padding_fraction
FROM part AS p
JOIN run AS r ON r.run_id = p.run_id
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = p.subgraph_index
JOIN work AS k ON k.run_id = p.run_id AND k.subgraph_index = p.subgraph_index;
COMMENT ON VIEW subgraph_results IS 'Allocations: each subgraph on the hardware of a run. wave_fill_fraction is tiles over waves x units, padding_fraction the part of its tiles'' MAC slots without a MAC. edp_share_js sums to the run''s EDP, edp_js does not';
