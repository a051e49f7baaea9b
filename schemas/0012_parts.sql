-- What several answers about the parts of runs share.

-- Two runs' energy by action: a row per action that either has, each side's count and price, the difference B minus A in
-- fJ and what of it the counts moved, at the mean of both prices.
CREATE MACRO ledger_pairs(run_a, run_b) AS TABLE
WITH side AS (
    SELECT
        l.run_id,
        a.component,
        a.action,
        a.category,
        a.part,
        a.per,
        sum(l.action_count ORDER BY l.operator_index) AS action_count,
        max(e.energy_per_action_fj) AS price_fj,
        max(e.basis) AS basis,
        sum(l.energy_fj) AS energy_fj
    FROM ledger_line AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN action AS a ON a.action_id = l.action_id
    JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id IN (run_a, run_b)
    GROUP BY l.run_id, a.component, a.action, a.category, a.part, a.per
),
joined AS (
    SELECT
        coalesce(a.component, b.component) AS component,
        coalesce(a.action, b.action) AS action,
        coalesce(a.part, b.part) AS part,
        coalesce(a.per, b.per) AS per,
        a.category AS category_a,
        b.category AS category_b,
        coalesce(a.action_count, 0e0) AS count_a,
        coalesce(b.action_count, 0e0) AS count_b,
        a.price_fj AS price_a,
        b.price_fj AS price_b,
        a.basis AS basis_a,
        b.basis AS basis_b,
        CAST(coalesce(b.energy_fj, 0) - coalesce(a.energy_fj, 0) AS BIGINT) AS difference_fj
    FROM (
        SELECT component, action, part, per, category, action_count, price_fj, basis, energy_fj
        FROM side
        WHERE run_id = run_a
    ) AS a
    FULL JOIN (
        SELECT component, action, part, per, category, action_count, price_fj, basis, energy_fj
        FROM side
        WHERE run_id = run_b
    ) AS b ON b.component = a.component AND b.action = a.action AND b.part = a.part AND b.per = a.per
)
SELECT
    component,
    action,
    part,
    per,
    category_a,
    category_b,
    count_a,
    count_b,
    price_a,
    price_b,
    basis_a,
    basis_b,
    difference_fj,
    price_a IS NOT NULL AND price_b IS NOT NULL AND part <> 'static' AS is_shared,
    CASE
        WHEN price_a = price_b THEN difference_fj
        WHEN count_a = count_b THEN 0
        ELSE CAST(round_even((count_b - count_a) * ((price_a + price_b) / 2e0), 0) AS BIGINT)
    END AS by_count_fj
FROM joined;

-- Why run B takes longer than run A, exactly: terms over what bounds each subgraph, subgraphs matched by name.
CREATE MACRO latency_terms(run_a, run_b) AS TABLE
WITH time AS (
    SELECT
        s.run_id,
        g.name,
        s.latency_fs,
        least(s.latency_fs, CAST(round(s.launch_s * 1e15) AS BIGINT)) AS launch_fs,
        s.compute_s >= s.memory_s AS is_computing,
        s.kernel_count,
        s.executed_mac_count,
        s.moved_bytes
    FROM run_subgraph AS s
    JOIN run AS r ON r.run_id = s.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
    WHERE s.run_id IN (run_a, run_b)
),
spent AS (
    SELECT run_id, name, 'launch' AS resource, launch_fs AS spent_fs, CAST(kernel_count AS DOUBLE) AS work_count
    FROM time
    UNION ALL
    SELECT
        run_id,
        name,
        CASE WHEN is_computing THEN 'compute' ELSE 'memory' END,
        latency_fs - launch_fs,
        CASE WHEN is_computing THEN coalesce(executed_mac_count, 0e0) ELSE moved_bytes END
    FROM time
),
met AS (
    SELECT
        coalesce(a.name, b.name) AS name,
        coalesce(a.resource, b.resource) AS resource,
        coalesce(a.spent_fs, 0) AS spent_a,
        coalesce(b.spent_fs, 0) AS spent_b,
        coalesce(a.work_count, 0e0) AS work_a,
        coalesce(b.work_count, 0e0) AS work_b,
        a.spent_fs IS NOT NULL AND b.spent_fs IS NOT NULL AS is_met,
        b.spent_fs IS NULL AS is_a
    FROM (SELECT name, resource, spent_fs, work_count FROM spent WHERE run_id = run_a AND spent_fs > 0) AS a
    FULL JOIN (SELECT name, resource, spent_fs, work_count FROM spent WHERE run_id = run_b AND spent_fs > 0) AS b
        ON b.name = a.name AND b.resource = a.resource
),
parted AS (
    SELECT
        name,
        resource,
        spent_a,
        spent_b,
        work_a,
        work_b,
        is_met,
        is_a,
        CASE
            WHEN work_a = work_b OR work_a = 0e0 OR work_b = 0e0 THEN 0
            ELSE CAST(round_even((work_b - work_a) * ((spent_a / work_a + spent_b / work_b) / 2e0), 0) AS BIGINT)
        END AS by_work_fs
    FROM met
),
delay AS (
    SELECT
        CASE WHEN is_a THEN 'only in A' ELSE 'only in B' END AS term,
        resource, spent_a, spent_b, work_a, work_b,
        spent_b - spent_a AS difference_fs
    FROM parted
    WHERE NOT is_met
    UNION ALL
    SELECT 'count', resource, spent_a, spent_b, work_a, work_b, by_work_fs
    FROM parted
    WHERE is_met
    UNION ALL
    SELECT 'price', resource, spent_a, spent_b, work_a, work_b, spent_b - spent_a - by_work_fs
    FROM parted
    WHERE is_met
)
SELECT
    term,
    resource,
    CASE resource WHEN 'launch' THEN 'kernel' WHEN 'compute' THEN 'MAC slot' ELSE 'B' END AS per,
    CAST(count(*) AS BIGINT) AS part_count,
    sum(CAST(work_a AS DECIMAL(38, 6))) AS work_a,
    sum(CAST(work_b AS DECIMAL(38, 6))) AS work_b,
    sum(spent_a) AS spent_a,
    sum(spent_b) AS spent_b,
    sum(difference_fs) AS difference_fs
FROM delay
GROUP BY term, resource
HAVING sum(difference_fs) <> 0;

-- Every subgraph or operator of runs, with what it costs: value is of the metric.
CREATE MACRO parts(run_ids, level, metric) AS TABLE
WITH asked AS (
    SELECT
        r.run_id,
        r.workload_id,
        w.model,
        configuration_name(v.hardware, r.power_mode) AS hardware,
        CASE WHEN level IN ('subgraph', 'operator') THEN level = 'operator'
            ELSE error('level is ' || level || ', expected subgraph or operator')
        END AS is_operator
    FROM run AS r
    JOIN workload AS w ON w.workload_id = r.workload_id
    JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
    WHERE list_contains(run_ids, r.run_id) AND r.refusal IS NULL
        AND CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM run WHERE list_contains(run_ids, run_id)) > 32
                THEN error('the runs are of more than 32 workloads; ask about fewer models or batches at once')
            ELSE TRUE
        END
),
energy AS (
    SELECT
        l.run_id,
        CASE WHEN level = 'operator' THEN l.operator_index ELSE l.subgraph_index END AS part_index,
        sum(l.energy_fj) AS energy_fj,
        sum(
            CASE
                WHEN level = 'operator' AND l.action_id IN (SELECT action_id FROM action WHERE component = 'dram')
                    THEN CAST(l.action_count AS DECIMAL(38, 9))
            END
        ) AS dram_bytes
    FROM ledger_line AS l
    WHERE list_contains(run_ids, l.run_id)
    GROUP BY ALL
),
placed AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        s.subgraph_index AS part_index,
        s.latency_fs,
        s.dram_bytes,
        FALSE AS is_operator
    FROM run_subgraph AS s
    WHERE level <> 'operator' AND list_contains(run_ids, s.run_id)
    UNION ALL
    SELECT
        o.run_id,
        o.subgraph_index,
        o.operator_index,
        o.latency_fs,
        s.dram_bytes * coalesce(
            o.moved_bytes / nullif(sum(o.moved_bytes) OVER in_kernel, 0e0),
            1e0 / count(*) OVER in_kernel
        ),
        TRUE
    FROM run_operator AS o
    JOIN run_subgraph AS s ON s.run_id = o.run_id AND s.subgraph_index = o.subgraph_index
    WHERE level = 'operator' AND list_contains(run_ids, o.run_id) AND list_contains(run_ids, s.run_id)
    WINDOW in_kernel AS (
        PARTITION BY o.run_id, o.subgraph_index ORDER BY o.operator_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
figure AS (
    SELECT
        a.run_id,
        a.workload_id,
        a.model,
        a.hardware,
        p.part_index,
        p.subgraph_index,
        CAST(coalesce(e.energy_fj, 0) AS DOUBLE) / 1e15 AS energy_j,
        p.latency_fs / 1e15 AS latency_s,
        (
            CAST(coalesce(e.energy_fj, 0) AS DOUBLE) / 1e15
                * (CAST(sum(p.latency_fs) OVER (PARTITION BY a.run_id) AS DOUBLE) / 1e15)
            + CAST(sum(e.energy_fj) OVER (PARTITION BY a.run_id) AS DOUBLE) / 1e15 * (p.latency_fs / 1e15)
        ) / 2e0 AS edp_share_js,
        CASE
            WHEN a.is_operator AND count(e.dram_bytes) OVER (PARTITION BY a.run_id) > 0
                THEN coalesce(CAST(e.dram_bytes AS DOUBLE), 0e0)
            ELSE p.dram_bytes
        END AS memory_bytes
    FROM asked AS a
    JOIN placed AS p ON p.run_id = a.run_id AND p.is_operator = a.is_operator
    LEFT JOIN energy AS e ON e.run_id = a.run_id AND e.part_index = p.part_index
)
SELECT
    run_id, workload_id, model, hardware, part_index, subgraph_index,
    energy_j, latency_s, edp_share_js, memory_bytes,
    CASE metric
        WHEN 'energy' THEN energy_j
        WHEN 'latency' THEN latency_s
        WHEN 'edp' THEN edp_share_js
        WHEN 'memory' THEN memory_bytes
        ELSE error('metric is ' || metric || ', expected energy, latency, edp or memory')
    END AS value
FROM figure;
