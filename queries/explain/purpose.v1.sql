/*
record = "PurposeDifference"
summary = "Energy and time of two runs of a language model by purpose: weights, cache, attention, experts, logits, communication, host, static"
grain = "one row per purpose of either run; energies and times each sum to the difference B minus A, exactly"
order = ["absolute difference of the metric descending", "purpose"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
metric = { type = "VARCHAR", default = "energy", meaning = "metric of the order and of difference_fraction: energy or latency; any other means energy" }
[columns]
purpose = { type = "VARCHAR", meaning = "weights: GEMMs with weights; logits: the last GEMM, over the vocabulary; experts: GEMMs of a mixture of experts; cache: keys and values read from and appended to off-chip memory; attention: all other costs of attention; communication: between devices; host: kernel launches, in eager by the host; static: static power; rest: norms, activations, embeddings and similar work" }
latency_a_fs = { type = "HUGEINT", unit = "fs", meaning = "exact latency on A; 0 for static power" }
latency_a_s = { heading = "time A", type = "DOUBLE", unit = "s", meaning = "exact time on A of kernels for this purpose; for attention kernels, the memory time counts for the cache" }
latency_b_s = { heading = "time B", type = "DOUBLE", unit = "s", meaning = "latency on B" }
difference_fraction = { heading = "share of time differences", type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
*/
WITH part AS (
    SELECT
        r.run_id,
        o.operator_index,
        o.latency_fs,
        least(s.latency_fs, CAST(round(s.launch_s * 1e15) AS BIGINT)) AS launch_fs,
        s.latency_fs AS kernel_fs,
        o.subgraph_index,
        coalesce(least(s.memory_s / nullif(greatest(s.memory_s, s.compute_s), 0e0), 1e0), 0e0) AS moving_fraction,
        CASE
            WHEN q.kind = 'communication' THEN 'communication'
            WHEN contains(q.aten, 'scaled_dot_product') OR contains(q.aten, 'attention') THEN 'attention'
            WHEN contains(q.operation, 'append') THEN 'cache'
            WHEN starts_with(q.aten, 'experts') OR q.operation = 'grouped_mm' THEN 'experts'
            WHEN q.mac_count > 0 AND regexp_matches(q.name, '(^|[.])(lm_head|logits|output_projection)([.]|$)') THEN 'logits'
            WHEN q.kind IN ('linear', 'conv', 'depthwise_conv', 'grouped_conv', 'matmul') THEN 'weights'
            ELSE 'rest'
        END AS purpose
    FROM internal.run AS r
    JOIN internal.run_operator AS o ON o.run_id = r.run_id
    JOIN internal.run_subgraph AS s ON s.run_id = o.run_id AND s.subgraph_index = o.subgraph_index
    JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = o.subgraph_index
    WHERE
        r.run_id IN ($run_a, $run_b)
        AND o.run_id IN ($run_a, $run_b) AND s.run_id IN ($run_a, $run_b) -- a plan may join subgraphs of all runs first
        AND $subgraph IN ('', g.name)
),
-- the launch time of a kernel is divided among its operators in proportion to their time, in whole femtoseconds
started AS (
    SELECT
        run_id,
        operator_index,
        purpose,
        moving_fraction,
        latency_fs,
        CASE
            WHEN kernel_fs > 0
                THEN CAST(floor(CAST(latency_fs AS DOUBLE) * (CAST(launch_fs AS DOUBLE) / kernel_fs)) AS BIGINT)
            ELSE 0
        END AS launch_fs
    FROM part
),
spent AS (
    SELECT
        l.run_id,
        CASE
            WHEN a.common_category = 'static' THEN 'static'
            WHEN r.role = 'launch' THEN 'host'
            WHEN p.purpose = 'attention' AND a.common_category = 'off_chip_memory' THEN 'cache'
            ELSE p.purpose
        END AS purpose,
        CAST(l.energy_fj AS HUGEINT) AS energy_fj,
        CAST(0 AS HUGEINT) AS latency_fs
    FROM internal.ledger_line AS l
    JOIN part AS p ON p.run_id = l.run_id AND p.operator_index = l.operator_index
    JOIN internal.action AS a ON a.action_id = l.action_id
    JOIN internal.run AS n ON n.run_id = l.run_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = n.hardware_digest
    LEFT JOIN internal.action_role AS r
        ON r.architecture = v.architecture AND r.component = a.component AND r.action = a.action
    WHERE l.run_id IN ($run_a, $run_b)
    UNION ALL
    SELECT run_id, purpose, 0, latency_fs - launch_fs
    FROM started
    WHERE purpose <> 'attention'
    UNION ALL
    SELECT
        run_id,
        unnest(['cache', 'attention']),
        0,
        unnest([
            CAST(floor((latency_fs - launch_fs) * moving_fraction) AS BIGINT),
            latency_fs - launch_fs - CAST(floor((latency_fs - launch_fs) * moving_fraction) AS BIGINT)
        ])
    FROM started
    WHERE purpose = 'attention'
    UNION ALL
    SELECT run_id, 'host', 0, launch_fs
    FROM started
),
met AS (
    SELECT
        purpose,
        CAST(coalesce(sum(energy_fj) FILTER (run_id = $run_a), 0) AS HUGEINT) AS energy_a_fj,
        CAST(coalesce(sum(energy_fj) FILTER (run_id = $run_b), 0) AS HUGEINT) AS energy_b_fj,
        CAST(coalesce(sum(latency_fs) FILTER (run_id = $run_a), 0) AS HUGEINT) AS latency_a_fs,
        CAST(coalesce(sum(latency_fs) FILTER (run_id = $run_b), 0) AS HUGEINT) AS latency_b_fs
    FROM spent
    GROUP BY purpose
),
weighed AS (
    SELECT
        met.*,
        CASE WHEN $metric = 'latency' THEN latency_b_fs - latency_a_fs ELSE energy_b_fj - energy_a_fj END AS difference_exact
    FROM met
    WHERE energy_a_fj <> 0 OR energy_b_fj <> 0 OR latency_a_fs <> 0 OR latency_b_fs <> 0
)
SELECT
    purpose,
    energy_a_fj,
    energy_b_fj,
    energy_b_fj - energy_a_fj AS energy_difference_fj,
    latency_a_fs,
    latency_b_fs,
    latency_b_fs - latency_a_fs AS latency_difference_fs,
    joules(energy_a_fj) AS energy_a_j,
    joules(energy_b_fj) AS energy_b_j,
    seconds(latency_a_fs) AS latency_a_s,
    seconds(latency_b_fs) AS latency_b_s,
    fraction(difference_exact, sum(difference_exact) OVER ()) AS difference_fraction
FROM weighed
ORDER BY abs(difference_exact) DESC, purpose
