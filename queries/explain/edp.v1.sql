/*
name = "explain.edp"
version = 1
schema = 5
summary = "Why one run has a larger energy-delay product than another: an exact additive decomposition"
grain = "one row per term; terms sum to twice the difference of E T, B minus A, exactly"
order = ["absolute difference_exact descending", "place", "per", "term"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
[columns]
term = { type = "VARCHAR", meaning = "as of explain.energy with energy, and of explain.latency with latency, e.g. energy: count" }
place = { type = "VARCHAR", meaning = "component.action, or launch, compute or memory time" }
per = { type = "VARCHAR", meaning = "what one count is" }
part_count = { type = "BIGINT", meaning = "1, or subgraphs of a time" }
count_a = { type = "DOUBLE", meaning = "how many on A" }
count_b = { type = "DOUBLE", meaning = "how many on B" }
price_a = { type = "DOUBLE", meaning = "energy or time of one on A; null without a count" }
price_b = { type = "DOUBLE", meaning = "energy or time of one on B; null without a count" }
price_unit = { type = "VARCHAR", meaning = "of the prices" }
difference_exact = { type = "HUGEINT", meaning = "this term of B minus A, twice, in fJ fs, exact: an energy term x (T of A + T of B), a time term x (E of A + E of B)" }
difference = { type = "DOUBLE", meaning = "this term of B minus A, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of difference" }
share_fraction = { type = "DOUBLE", meaning = "of the whole difference; negative where it goes the other way" }
*/
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
    WHERE l.run_id IN ($run_a, $run_b)
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
        WHERE run_id = $run_a
    ) AS a
    FULL JOIN (
        SELECT component, action, part, per, category, action_count, price_fj, basis, energy_fj
        FROM side
        WHERE run_id = $run_b
    ) AS b ON b.component = a.component AND b.action = a.action AND b.part = a.part AND b.per = a.per
),
split AS (
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
    FROM joined
),
terms AS (
    SELECT
        CASE WHEN part = 'static' THEN 'static' WHEN price_b IS NULL THEN 'only in A' ELSE 'only in B' END AS term,
        category_a, category_b, component, action, per, part, count_a, count_b, price_a, price_b, basis_a, basis_b,
        difference_fj
    FROM split
    WHERE NOT is_shared
    UNION ALL
    SELECT 'count', category_a, category_b, component, action, per, part, count_a, count_b, price_a, price_b, basis_a, basis_b,
        by_count_fj
    FROM split
    WHERE is_shared
    UNION ALL
    SELECT
        'price', category_a, category_b, component, action, per, part, count_a, count_b, price_a, price_b, basis_a, basis_b,
        difference_fj - by_count_fj
    FROM split
    WHERE is_shared
),
time AS (
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
    WHERE s.run_id IN ($run_a, $run_b)
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
    FROM (SELECT name, resource, spent_fs, work_count FROM spent WHERE run_id = $run_a AND spent_fs > 0) AS a
    FULL JOIN (SELECT name, resource, spent_fs, work_count FROM spent WHERE run_id = $run_b AND spent_fs > 0) AS b
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
),
delays AS (
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
    HAVING sum(difference_fs) <> 0
),
whole AS (
    SELECT
        (SELECT sum(energy_fj) FROM side) AS energy_fj,
        (SELECT sum(latency_fs) FROM time) AS latency_fs
),
halves AS (
    SELECT
        'energy: ' || t.term AS term,
        t.component || '.' || t.action AS place,
        t.per,
        CAST(1 AS BIGINT) AS part_count,
        t.count_a,
        t.count_b,
        t.price_a / 1e15 AS price_a,
        t.price_b / 1e15 AS price_b,
        CASE WHEN t.per = 's' THEN 'W' ELSE 'J' END AS price_unit,
        CAST(t.difference_fj AS HUGEINT) * w.latency_fs AS difference_exact
    FROM terms AS t
    CROSS JOIN whole AS w
    WHERE t.difference_fj <> 0
    UNION ALL
    SELECT
        'latency: ' || d.term,
        d.resource,
        d.per,
        d.part_count,
        CAST(d.work_a AS DOUBLE),
        CAST(d.work_b AS DOUBLE),
        CAST(d.spent_a AS DOUBLE) / 1e15 / nullif(CAST(d.work_a AS DOUBLE), 0e0),
        CAST(d.spent_b AS DOUBLE) / 1e15 / nullif(CAST(d.work_b AS DOUBLE), 0e0),
        's',
        d.difference_fs * w.energy_fj
    FROM delays AS d
    CROSS JOIN whole AS w
)
SELECT
    term,
    place,
    per,
    part_count,
    count_a,
    count_b,
    price_a,
    price_b,
    price_unit,
    difference_exact,
    CAST(difference_exact AS DOUBLE) / 2e30 AS difference,
    'Js' AS unit,
    CAST(difference_exact AS DOUBLE) / nullif(CAST(sum(difference_exact) OVER () AS DOUBLE), 0e0) AS share_fraction
FROM halves
ORDER BY abs(difference_exact) DESC, place, per, term
