/*
record = "EdpOperatorShare"
summary = "Energy-delay product of each operator of a run, by part and cumulative"
grain = "one row per operator, and one for biases that GEMMs add themselves; shares sum to the run's energy-delay product"
[columns]
name = { heading = "operator", type = "VARCHAR", meaning = "name of the operator; for a bias, the name of its GEMM followed by .bias" }
operation = { type = "VARCHAR", meaning = "conv2d, relu, add ...; bias" }
kind = { type = "VARCHAR", meaning = "kind of operator: conv, linear, elementwise ...; bias" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact energy; for a bias, its additions, which are not part of its GEMM" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "exact latency; 0 for a bias, whose time is part of its GEMM's" }
share_fraction = { heading = "run share", type = "DOUBLE", meaning = "edp_share_js over E T" }
is_fused = { heading = "fused" }
compute_share_fraction = { heading = "compute" }
memory_share_fraction = { heading = "memory" }
static_share_fraction = { heading = "static" }
fusion_pattern = { heading = "pattern" }
rank = { heading = "#" }
halving_fraction = { heading = "saved by halving" }
edp_share_js = { heading = "additive EDP" }
control_share_fraction = { heading = "control" }
edp_js = { heading = "own EDP" }
*/
WITH placed AS MATERIALIZED (
    SELECT
        operator_index, subgraph_index, name, operation, kind, fusion_pattern, is_fused, bias_addition_count, energy_fj,
        latency_fs, run_fj, run_fs, latency_fraction, compute_share_fraction, memory_share_fraction,
        control_share_fraction, static_share_fraction, bottleneck
    FROM cube.part(run_ids := [$run_id], division := 'operator')
),
bias AS (
    SELECT
        p.operator_index,
        sum(
            CASE
                WHEN l.action_count <= p.bias_addition_count THEN l.energy_fj
                ELSE CAST(round(l.energy_fj * (p.bias_addition_count / l.action_count)) AS BIGINT)
            END
        ) AS energy_fj
    FROM placed AS p
    JOIN internal.ledger_line AS l ON l.operator_index = p.operator_index
    JOIN internal.action AS a ON a.action_id = l.action_id
    WHERE l.run_id = $run_id AND p.bias_addition_count > 0 AND a.action = 'elementwise'
    GROUP BY p.operator_index
),
part AS (
    SELECT
        p.operator_index,
        p.subgraph_index,
        p.name,
        p.operation,
        p.kind,
        p.fusion_pattern,
        p.is_fused,
        p.latency_fs,
        p.run_fj,
        p.run_fs,
        p.latency_fraction,
        p.memory_share_fraction,
        p.control_share_fraction,
        p.static_share_fraction,
        p.bottleneck,
        FALSE AS is_bias,
        p.energy_fj - coalesce(b.energy_fj, 0) AS energy_fj,
        fraction(p.energy_fj - coalesce(b.energy_fj, 0), p.run_fj) AS energy_fraction,
        p.compute_share_fraction - coalesce(fraction(b.energy_fj, p.run_fj), 0e0) / 2e0 AS compute_share_fraction
    FROM placed AS p
    LEFT JOIN bias AS b ON b.operator_index = p.operator_index
    UNION ALL BY NAME
    SELECT
        p.operator_index,
        p.subgraph_index,
        p.name || '.bias' AS name,
        'bias' AS operation,
        'bias' AS kind,
        p.fusion_pattern,
        p.is_fused,
        0 AS latency_fs,
        p.run_fj,
        p.run_fs,
        0e0 AS latency_fraction,
        0e0 AS memory_share_fraction,
        0e0 AS control_share_fraction,
        0e0 AS static_share_fraction,
        p.bottleneck,
        TRUE AS is_bias,
        b.energy_fj,
        fraction(b.energy_fj, p.run_fj) AS energy_fraction,
        fraction(b.energy_fj, p.run_fj) / 2e0 AS compute_share_fraction
    FROM bias AS b
    JOIN placed AS p ON p.operator_index = b.operator_index
)
SELECT
    row_number() OVER by_share AS rank,
    operator_index,
    subgraph_index,
    name,
    operation,
    kind,
    fusion_pattern,
    is_fused,
    energy_fj,
    joules(energy_fj) AS energy_j,
    latency_fs,
    seconds(latency_fs) AS latency_s,
    joules(energy_fj) * seconds(latency_fs) AS edp_js,
    edp_share(energy_fj, latency_fs, run_fj, run_fs) AS edp_share_js,
    (energy_fraction + latency_fraction) / 2e0 AS share_fraction,
    (fraction(sum(energy_fj) OVER by_share, run_fj) + fraction(sum(latency_fs) OVER by_share, run_fs)) / 2e0
        AS cumulative_fraction,
    compute_share_fraction,
    memory_share_fraction,
    control_share_fraction,
    static_share_fraction,
    (energy_fraction + latency_fraction) / 2e0 - energy_fraction * latency_fraction / 4e0 AS halving_fraction,
    bottleneck
FROM part
WINDOW by_share AS (
    ORDER BY energy_fraction + latency_fraction DESC, operator_index, is_bias
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)
ORDER BY rank
