/*
record = "Finding"
summary = "Broken rules of the tables; a sound database returns no row"
grain = "one row per broken rule and location"
table = ["rule", 'run_id.headed("run_id")', 'workload_id.headed("workload")', "location", "expected", "found"]
[columns]
rule = { type = "VARCHAR", meaning = "broken rule" }
run_id = { type = "INTEGER", null = true, meaning = "run; null for a rule about anything else" }
workload_id = { type = "INTEGER", null = true, meaning = "workload; null for a rule about anything else" }
location = { type = "VARCHAR", meaning = "table and key of the fault" }
expected = { type = "VARCHAR", meaning = "value that the rule expects" }
found = { type = "VARCHAR", meaning = "value in the database" }
*/
-- The ledger is read once and summed by operator, which leaves a twentieth of its rows. Each action of an operator sets
-- its own bit, so fewer bits than lines reveal a duplicate. Only suspicious runs are then read line by line: those with
-- a duplicate, an operator in two subgraphs, or a line whose energy is not count x energy per action. A sum of doubles
-- depends on its order, and ordered sums take ten times as long. So subgraphs are first summed in any order; only sums
-- that differ from the stored one are computed again in the stored order.
WITH evaluated AS (SELECT run_id FROM internal.run WHERE refusal IS NULL),
total AS (FROM numpy.totals_of(evaluated)),
price AS (
    SELECT
        e.hardware_digest,
        e.action_id,
        e.energy_per_action_fj,
        a.category,
        a.common_category,
        a.action,
        a.part = 'static' AS is_static,
        row_number() OVER (
            PARTITION BY e.hardware_digest ORDER BY e.action_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) - 1 AS position
    FROM internal.energy_per_action AS e
    LEFT JOIN internal.action AS a ON a.action_id = e.action_id
),
run_price AS MATERIALIZED (
    SELECT
        r.run_id,
        p.action_id,
        p.energy_per_action_fj,
        voltage_factor_of(p.category, p.common_category, p.action, r.voltage_factor) AS voltage_factor,
        p.is_static,
        p.position
    FROM internal.run AS r
    JOIN price AS p ON p.hardware_digest = r.hardware_digest
),
line AS NOT MATERIALIZED (
    SELECT
        l.run_id,
        l.subgraph_index,
        l.operator_index,
        l.action_count,
        l.energy_fj,
        l.action_count * p.energy_per_action_fj * p.voltage_factor AS exact_fj,
        p.is_static,
        p.position
    FROM internal.ledger_line AS l
    LEFT JOIN run_price AS p ON p.run_id = l.run_id AND p.action_id = l.action_id
),
operator_line AS MATERIALIZED (
    SELECT
        run_id,
        operator_index,
        min(subgraph_index) AS subgraph_index,
        max(action_count) FILTER (WHERE is_static) AS static_s,
        count(*) <> bit_count(bit_or(CAST(1 AS BIGINT) << least(position, 62)) FILTER (WHERE position < 62))
            OR min(subgraph_index) <> max(subgraph_index) AS is_suspect,
        bool_or(energy_fj IS DISTINCT FROM CAST(exact_fj AS BIGINT)) AS is_mispriced
    FROM line
    GROUP BY run_id, operator_index
),
mispriced_run AS MATERIALIZED (
    SELECT DISTINCT run_id FROM operator_line WHERE is_mispriced
),
mispriced_line AS MATERIALIZED (
    SELECT l.run_id, l.operator_index, l.action_id, l.action_count, l.energy_fj
    FROM internal.ledger_line AS l
    SEMI JOIN mispriced_run AS m ON m.run_id = l.run_id
),
mispriced AS MATERIALIZED (
    SELECT run_id, operator_index, action_id, energy_fj, CAST(exact_fj AS BIGINT) AS expected_fj
    FROM (
        SELECT
            l.run_id,
            l.operator_index,
            l.action_id,
            l.energy_fj,
            l.action_count * p.energy_per_action_fj * p.voltage_factor AS exact_fj
        FROM mispriced_line AS l
        LEFT JOIN run_price AS p ON p.run_id = l.run_id AND p.action_id = l.action_id
    )
    WHERE energy_fj IS DISTINCT FROM CAST(exact_fj AS BIGINT)
),
subgraph_sum AS MATERIALIZED (
    SELECT
        run_id,
        subgraph_index,
        sum(latency_fs) AS latency_fs,
        sum(kernel_count) AS kernel_count,
        sum(dram_bytes) AS dram_bytes,
        sum(moved_bytes) AS moved_bytes,
        sum(pass_bytes) AS pass_bytes
    FROM internal.run_operator
    GROUP BY run_id, subgraph_index
),
doubtful AS MATERIALIZED (
    SELECT s.run_id, s.subgraph_index
    FROM internal.run_subgraph AS s
    JOIN subgraph_sum AS o ON o.run_id = s.run_id AND o.subgraph_index = s.subgraph_index
    WHERE s.kernel_count IS DISTINCT FROM o.kernel_count
        OR s.dram_bytes IS DISTINCT FROM o.dram_bytes
        OR s.moved_bytes IS DISTINCT FROM o.moved_bytes
        OR s.pass_bytes IS DISTINCT FROM o.pass_bytes
),
suspect AS MATERIALIZED (
    SELECT DISTINCT run_id FROM operator_line WHERE is_suspect IS DISTINCT FROM FALSE
),
suspect_line AS MATERIALIZED (
    SELECT l.run_id, l.subgraph_index, l.operator_index, l.action_id, l.action_count, a.part
    FROM internal.ledger_line AS l
    SEMI JOIN suspect AS s ON s.run_id = l.run_id
    LEFT JOIN internal.action AS a ON a.action_id = l.action_id
),
booked AS NOT MATERIALIZED (
    SELECT run_id, subgraph_index, operator_index, static_s
    FROM operator_line AS o
    ANTI JOIN suspect AS s ON s.run_id = o.run_id
    UNION ALL
    SELECT run_id, subgraph_index, operator_index, CASE WHEN part = 'static' THEN action_count END
    FROM suspect_line
),
broken AS (
    SELECT
        'a ledger line has a price' AS rule,
        run_id,
        'operator ' || operator_index || ' action ' || action_id AS location,
        'a row of energy_per_action' AS expected,
        'none' AS found
    FROM mispriced
    WHERE expected_fj IS NULL
    UNION ALL
    SELECT
        'energy_fj is round(count x energy per action)',
        run_id,
        'operator ' || operator_index || ' action ' || action_id,
        CAST(expected_fj AS VARCHAR),
        CAST(energy_fj AS VARCHAR)
    FROM mispriced
    WHERE expected_fj IS NOT NULL
    UNION ALL
    SELECT
        'an action stands once per operator',
        run_id,
        'operator ' || operator_index || ' action ' || action_id,
        '1',
        CAST(count(*) AS VARCHAR)
    FROM suspect_line
    GROUP BY run_id, operator_index, action_id
    HAVING count(*) > 1
    UNION ALL
    SELECT
        'operator latencies sum to their subgraph',
        s.run_id,
        'subgraph ' || s.subgraph_index,
        CAST(s.latency_fs AS VARCHAR),
        CAST(coalesce(o.latency_fs, 0) AS VARCHAR)
    FROM internal.run_subgraph AS s
    LEFT JOIN subgraph_sum AS o ON o.run_id = s.run_id AND o.subgraph_index = s.subgraph_index
    WHERE s.latency_fs IS DISTINCT FROM o.latency_fs
    UNION ALL
    SELECT
        'kernels and bytes of operators sum to their subgraph',
        s.run_id,
        'subgraph ' || s.subgraph_index,
        concat_ws(', ', s.kernel_count, s.dram_bytes, s.moved_bytes, s.pass_bytes),
        concat_ws(', ', o.kernel_count, o.dram_bytes, o.moved_bytes, o.pass_bytes)
    FROM internal.run_subgraph AS s
    JOIN (
        SELECT
            n.run_id,
            n.subgraph_index,
            sum(n.kernel_count) AS kernel_count,
            sum(n.dram_bytes ORDER BY n.operator_index) AS dram_bytes,
            sum(n.moved_bytes ORDER BY n.operator_index) AS moved_bytes,
            sum(n.pass_bytes ORDER BY n.operator_index) AS pass_bytes
        FROM internal.run_operator AS n
        SEMI JOIN doubtful AS d ON d.run_id = n.run_id AND d.subgraph_index = n.subgraph_index
        GROUP BY n.run_id, n.subgraph_index
    ) AS o ON o.run_id = s.run_id AND o.subgraph_index = s.subgraph_index
    WHERE (s.kernel_count, s.dram_bytes, s.moved_bytes, s.pass_bytes)
        IS DISTINCT FROM (o.kernel_count, o.dram_bytes, o.moved_bytes, o.pass_bytes)
    UNION ALL
    SELECT
        'an operator of a run has its subgraph',
        o.run_id,
        'operator ' || o.operator_index,
        'a row of run_subgraph',
        'none'
    FROM internal.run_operator AS o
    ANTI JOIN internal.run_subgraph AS s ON s.run_id = o.run_id AND s.subgraph_index = o.subgraph_index
    UNION ALL
    SELECT
        'an operator that takes time has its static line',
        o.run_id,
        'operator ' || o.operator_index,
        'a static line',
        'none'
    FROM internal.run_operator AS o
    ANTI JOIN booked AS b
        ON b.run_id = o.run_id AND b.operator_index = o.operator_index AND b.static_s IS NOT NULL
    WHERE o.interval_fs > 0
    UNION ALL
    SELECT
        'from one batch to the next is at most the latency',
        o.run_id,
        'run',
        'at most ' || sum(o.latency_fs),
        CAST(sum(o.interval_fs) AS VARCHAR)
    FROM internal.run_operator AS o
    GROUP BY o.run_id
    HAVING sum(o.interval_fs) > sum(o.latency_fs)
    UNION ALL
    SELECT
        'an operator that the runtime launches is in the run',
        r.run_id,
        'operator ' || q.operator_index,
        'a row of run_operator',
        'none'
    FROM internal.run AS r
    JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id
    ANTI JOIN internal.run_operator AS o ON o.run_id = r.run_id AND o.operator_index = q.operator_index
    -- A device alone leaves out the operators of its host; `run.omitted` lists them.
    ANTI JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest AND v.host = 'none'
    -- A compiler joins copies, pads and concatenations with their neighbours, and the parts of a formula with its last.
    LEFT JOIN (SELECT DISTINCT run_id, subgraph_index FROM internal.run_operator) AS k
        ON k.run_id = r.run_id AND k.subgraph_index = q.subgraph_index
    WHERE r.has_ledger AND q.kind <> 'view'
        AND NOT (
            is_merging(r.runtime)
            AND (
                q.is_foldable OR q.kind = 'data_movement' OR (q.mac_count = 0 AND k.subgraph_index IS NOT NULL)
            )
        )
    UNION ALL
    SELECT
        'units used are at most those that exist',
        s.run_id,
        'subgraph ' || s.subgraph_index,
        'at most ' || r.units_total_count,
        CAST(s.units_used_count AS VARCHAR)
    FROM internal.run_subgraph AS s
    JOIN internal.run AS r ON r.run_id = s.run_id
    WHERE s.units_used_count > r.units_total_count
    UNION ALL
    SELECT
        'a ledger line belongs to an operator of its subgraph',
        l.run_id,
        'subgraph ' || l.subgraph_index || ' operator ' || l.operator_index,
        'a row of run_operator',
        'none'
    FROM (SELECT DISTINCT run_id, subgraph_index, operator_index FROM booked) AS l
    ANTI JOIN internal.run_operator AS o
        ON o.run_id = l.run_id AND o.subgraph_index = l.subgraph_index AND o.operator_index = l.operator_index
    UNION ALL
    SELECT
        'an operator of a run stands in the same subgraph of its workload',
        o.run_id,
        'operator ' || o.operator_index,
        'subgraph ' || coalesce(CAST(q.subgraph_index AS VARCHAR), 'none'),
        'subgraph ' || o.subgraph_index
    FROM internal.run_operator AS o
    JOIN internal.run AS r ON r.run_id = o.run_id
    LEFT JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    WHERE q.subgraph_index IS DISTINCT FROM o.subgraph_index
    UNION ALL
    SELECT 'a run with a ledger has subgraphs and lines', r.run_id, 'run', 'rows', 'none'
    FROM internal.run AS r
    WHERE r.has_ledger
        AND (
            NOT EXISTS (SELECT 1 FROM operator_line AS l WHERE l.run_id = r.run_id)
            OR NOT EXISTS (SELECT 1 FROM internal.run_subgraph AS s WHERE s.run_id = r.run_id)
        )
    UNION ALL
    SELECT
        'an evaluated run has either a ledger or sums',
        r.run_id,
        'run',
        CASE WHEN r.has_ledger OR r.refusal IS NOT NULL THEN 'no row of point_total' ELSE 'a row of point_total' END,
        CAST(count(p.run_id) AS VARCHAR)
    FROM internal.run AS r
    LEFT JOIN internal.point_total AS p ON p.run_id = r.run_id
    GROUP BY r.run_id, r.has_ledger, r.refusal
    HAVING count(p.run_id) <> CASE WHEN r.has_ledger OR r.refusal IS NOT NULL THEN 0 ELSE 1 END
    UNION ALL
    SELECT
        'latencies by what bounds them add up to the run',
        run_id,
        'run',
        CAST(latency_fs AS VARCHAR),
        CAST(
            0::HUGEINT + compute_bound_fs + operands_bound_fs + memory_bound_fs + launch_bound_fs + communication_bound_fs
            AS VARCHAR
        )
    FROM internal.point_total
    WHERE
        0::HUGEINT + compute_bound_fs + operands_bound_fs + memory_bound_fs + launch_bound_fs + communication_bound_fs
        <> latency_fs
    UNION ALL
    SELECT 'a run has its workload and hardware', r.run_id, 'run', 'both', 'missing'
    FROM internal.run AS r
    WHERE NOT EXISTS (SELECT 1 FROM internal.workload AS w WHERE w.workload_id = r.workload_id)
        OR NOT EXISTS (SELECT 1 FROM internal.hardware_version AS v WHERE v.hardware_digest = r.hardware_digest)
    UNION ALL
    SELECT 'a run has its calibration', r.run_id, 'run', 'a row of calibration', 'none'
    FROM internal.run AS r
    ANTI JOIN internal.calibration AS c ON c.calibration_digest = r.calibration_digest
    WHERE r.calibration_digest <> ''
    UNION ALL
    SELECT
        'the newest run of a configuration is marked',
        run_id,
        'run',
        CASE WHEN is_newest THEN 'false' ELSE 'true' END,
        CAST(is_newest AS VARCHAR)
    FROM internal.run
    WHERE is_newest <> (run_id IN (SELECT run_id FROM newest_runs))
    UNION ALL
    SELECT
        'actions of a run are those of its ledger',
        coalesce(t.run_id, p.run_id),
        'action ' || coalesce(t.action_id, p.action_id),
        concat_ws(', ', p.action_count, p.energy_fj),
        concat_ws(', ', t.action_count, t.energy_fj)
    FROM (
        SELECT run_id, action_id, sum(action_count) AS action_count, sum(energy_fj) AS energy_fj
        FROM internal.ledger_line
        GROUP BY run_id, action_id
        UNION ALL
        SELECT run_id, action_id, action_count, energy_fj
        FROM internal.point_action
    ) AS p
    FULL JOIN internal.run_action AS t ON t.run_id = p.run_id AND t.action_id = p.action_id
    WHERE p.energy_fj IS DISTINCT FROM t.energy_fj
        OR NOT coalesce(abs(p.action_count - t.action_count) <= 1e-9 * p.action_count, FALSE)
    UNION ALL
    SELECT
        'totals of a run are those of its parts',
        coalesce(t.run_id, p.run_id),
        'run_total',
        concat_ws(', ', p.latency_fs, p.interval_fs, p.energy_fj, p.mac_count, p.computed_mac_count, p.unit_fs,
            p.dram_bytes, p.moved_bytes, p.latency_half_width, p.energy_half_width),
        concat_ws(', ', t.latency_fs, t.interval_fs, t.energy_fj, t.mac_count, t.computed_mac_count, t.unit_fs,
            t.dram_bytes, t.moved_bytes, t.latency_half_width, t.energy_half_width)
    FROM total AS p
    FULL JOIN internal.run_total AS t ON t.run_id = p.run_id
    WHERE (p.latency_fs, p.interval_fs, p.energy_fj, p.mac_count, p.computed_mac_count, p.unit_fs, p.dram_bytes,
            p.moved_bytes, p.latency_basis, p.energy_basis, p.latency_group_count, p.energy_group_count)
        IS DISTINCT FROM (t.latency_fs, t.interval_fs, t.energy_fj, t.mac_count, t.computed_mac_count, t.unit_fs,
            t.dram_bytes, t.moved_bytes, t.latency_basis, t.energy_basis, t.latency_group_count, t.energy_group_count)
        OR greatest(
            abs(p.latency_half_width - t.latency_half_width), abs(p.energy_half_width - t.energy_half_width),
            abs(p.edp_half_width - t.edp_half_width), abs(p.power_half_width - t.power_half_width),
            abs(p.price_half_width - t.price_half_width),
            abs(p.latency_own_half_width - t.latency_own_half_width),
            abs(p.energy_own_half_width - t.energy_own_half_width)
        ) > 1e-9
    UNION ALL
    SELECT
        'the lines of a placement add up to its energy',
        p.placement_id,
        'placement of ' || p.model || ' on ' || p.devices,
        CAST(p.energy_fj AS VARCHAR),
        CAST(sum(l.energy_fj) AS VARCHAR)
    FROM internal.placement AS p
    LEFT JOIN internal.placement_line AS l ON l.placement_id = p.placement_id
    GROUP BY p.placement_id, p.model, p.devices, p.energy_fj
    HAVING sum(l.energy_fj) IS DISTINCT FROM p.energy_fj
    UNION ALL
    SELECT 'a row of a run belongs to a run', t.run_id, t.location, 'a row of run', 'none'
    FROM (
        SELECT DISTINCT run_id, 'ledger_line' AS location FROM operator_line
        UNION ALL
        SELECT DISTINCT run_id, 'run_subgraph' FROM internal.run_subgraph
        UNION ALL
        SELECT DISTINCT run_id, 'run_operator' FROM internal.run_operator
        UNION ALL
        SELECT DISTINCT run_id, 'point_total' FROM internal.point_total
        UNION ALL
        SELECT DISTINCT run_id, 'point_action' FROM internal.point_action
    ) AS t
    ANTI JOIN internal.run AS r ON r.run_id = t.run_id
    UNION ALL
    SELECT
        'static energy is static power x the time from one batch to the next',
        b.run_id,
        'operator ' || b.operator_index,
        CAST(seconds(o.interval_fs) AS VARCHAR),
        CAST(b.static_s AS VARCHAR)
    FROM booked AS b
    JOIN internal.run_operator AS o ON o.run_id = b.run_id AND o.operator_index = b.operator_index
    WHERE b.static_s <> seconds(o.interval_fs)
),
broken_workload AS (
    SELECT
        'the MACs of an operator are those of its GEMM view' AS rule,
        o.workload_id,
        'operator ' || o.operator_index AS location,
        CAST(o.view_mac_count AS VARCHAR) AS expected,
        CAST(o.mac_count AS VARCHAR) AS found
    FROM (
        -- a chunked scan has GEMMs of several shapes, but its GEMM columns describe only one of them
        SELECT
            workload_id,
            operator_index,
            mac_count,
            CAST(gemm_m AS HUGEINT) * gemm_n * gemm_k * gemm_groups AS view_mac_count,
            -- the GEMM columns hold the mean, rounded up, where groups differ in size or queries see different numbers
            -- of keys
            CASE
                WHEN operation = 'grouped_mm' AND gemm_groups > 1 THEN least(gemm_m, gemm_n, gemm_k)
                WHEN aten = 'aten.scaled_dot_product_attention.default' THEN
                    CASE WHEN name LIKE '%.weighted_sum' THEN gemm_k ELSE gemm_n END
            END AS rounded_count
        FROM internal.workload_operator
        WHERE operation <> 'scan'
    ) AS o
    WHERE o.mac_count > o.view_mac_count
        OR o.mac_count <= o.view_mac_count - coalesce(o.view_mac_count // nullif(o.rounded_count, 0), 1)
    UNION ALL
    SELECT
        'an operator is in exactly one subgraph of its workload',
        o.workload_id,
        'operator ' || o.operator_index,
        'one row of workload_subgraph',
        CAST(count(g.subgraph_index) AS VARCHAR)
    FROM internal.workload_operator AS o
    LEFT JOIN internal.workload_subgraph AS g ON g.workload_id = o.workload_id AND g.subgraph_index = o.subgraph_index
    GROUP BY o.workload_id, o.operator_index
    HAVING count(g.subgraph_index) <> 1
)
SELECT rule, run_id, NULL AS workload_id, location, expected, found
FROM broken
UNION ALL
SELECT rule, NULL, workload_id, location, expected, found
FROM broken_workload
ORDER BY rule, run_id, workload_id, location
