/*
summary = "Energy of runs by action, of the whole run or of each subgraph or operator"
grain = "one row per evaluated run, part and action; energies sum to the run, exactly"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one workload or of up to 32; refused ones are omitted" }
division = { type = "VARCHAR", default = "run", meaning = "kind of part: run, subgraph or operator" }
within = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph; empty for all" }
[columns]
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index; 0 for the run" }
subgraph_index = { type = "INTEGER", meaning = "number of the subgraph; 0 for the run" }
name = { type = "VARCHAR", of = "subgraph, operator", meaning = "name of the operator, or of the subgraph's leading operator" }
operation = { type = "VARCHAR", of = "subgraph, operator", meaning = "operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", of = "subgraph, operator", meaning = "operations of its subgraph in order" }
operator_index = { type = "INTEGER", of = "operator", meaning = "execution order" }
full_action = { type = "VARCHAR", meaning = "component.action" }
price_fj = { type = "DOUBLE", unit = "fJ", meaning = "energy per action at the run's voltage" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact sum of ledger lines, each round(count x energy per action)" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy of its part; null where the part takes no energy" }
run_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy of the run" }
category_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of its category in its part, exact" }
category_j = { type = "DOUBLE", unit = "J", meaning = "energy of its category in its part" }
category_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy of its category in its part" }
category_energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy of its part that its category takes" }
whole_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact energy of the run, or of the requested subgraph" }
mac_count = { type = "BIGINT", null = true, meaning = "multiply-accumulates of the model; null without MACs" }
count_per_mac = { type = "DOUBLE", null = true, meaning = "count per MAC of the model; null without MACs" }
energy_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per MAC of the model; null without MACs" }
rank = { type = "BIGINT", meaning = "rank by energy in its part" }
category_rank = { type = "BIGINT", meaning = "rank by energy in its common category and part" }
basis = { type = "VARCHAR", meaning = "basis of the energy per action: measured, published, derived, scaled, recalled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the energy per action" }
*/
WITH asked AS MATERIALIZED (
    SELECT
        r.run_id,
        r.workload_id,
        list_position($run_ids, r.run_id) AS position,
        r.model,
        r.configured_hardware AS hardware,
        r.architecture,
        r.hardware_digest,
        r.voltage_factor,
        t.energy_fj AS run_fj,
        nullif(t.mac_count, 0) AS mac_count
    FROM run_configurations AS r
    JOIN internal.run_total AS t ON t.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest($run_ids))
        AND CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM internal.run WHERE run_id IN (SELECT unnest($run_ids))) > 32
                THEN error('the runs are of more than 32 workloads; ask about fewer models or batches at once')
            WHEN $division NOT IN ('run', 'subgraph', 'operator')
                THEN error('division is ' || $division || ', expected run, subgraph or operator')
            ELSE TRUE
        END
),
line AS (
    SELECT run_id, 0 AS subgraph_index, 0 AS operator_index, action_id, action_count, energy_fj
    FROM internal.run_action
    WHERE $division = 'run' AND $within = '' AND run_id IN (SELECT unnest($run_ids))
    UNION ALL
    SELECT run_id, subgraph_index, operator_index, action_id, action_count, energy_fj
    FROM internal.ledger_line
    WHERE $division <> 'run' AND $within = '' AND run_id IN (SELECT unnest($run_ids))
    UNION ALL
    SELECT l.run_id, l.subgraph_index, l.operator_index, l.action_id, l.action_count, l.energy_fj
    FROM internal.ledger_line AS l
    JOIN asked AS r ON r.run_id = l.run_id
    JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = l.subgraph_index
    WHERE $within <> '' AND l.run_id IN (SELECT unnest($run_ids)) AND g.name = $within
),
act AS (
    SELECT
        run_id,
        CASE $division WHEN 'operator' THEN operator_index WHEN 'subgraph' THEN subgraph_index ELSE 0 END
            AS part_index,
        CASE WHEN $division <> 'run' THEN any_value(subgraph_index) ELSE 0 END AS subgraph_index,
        action_id,
        sum(action_count ORDER BY operator_index) AS action_count,
        sum(energy_fj) AS energy_fj
    FROM line
    GROUP BY run_id, part_index, action_id
)
SELECT
    n.run_id,
    r.position,
    r.model,
    r.hardware,
    r.architecture,
    n.part_index,
    n.subgraph_index,
    coalesce(o.name, g.name) AS name,
    coalesce(o.operation, split_part(g.pattern, '+', 1)) AS operation,
    g.pattern AS fusion_pattern,
    CASE WHEN $division = 'operator' THEN n.part_index END AS operator_index,
    a.category,
    a.common_category,
    a.component,
    a.action,
    a.component || '.' || a.action AS full_action,
    a.part,
    a.per,
    n.action_count,
    e.energy_per_action_fj * voltage_factor_of(a.category, a.common_category, a.action, r.voltage_factor) AS price_fj,
    e.energy_per_action_fj * voltage_factor_of(a.category, a.common_category, a.action, r.voltage_factor) / 1e15 AS energy_per_action_j,
    n.energy_fj,
    joules(n.energy_fj) AS energy_j,
    fraction(n.energy_fj, sum(n.energy_fj) OVER in_part) AS energy_fraction,
    fraction(n.energy_fj, r.run_fj) AS run_fraction,
    sum(n.energy_fj) OVER in_category AS category_fj,
    joules(sum(n.energy_fj) OVER in_category) AS category_j,
    fraction(n.energy_fj, sum(n.energy_fj) OVER in_category) AS category_fraction,
    fraction(sum(n.energy_fj) OVER in_category, sum(n.energy_fj) OVER in_part) AS category_energy_fraction,
    r.run_fj,
    sum(n.energy_fj) OVER (PARTITION BY n.run_id) AS whole_energy_fj,
    r.mac_count,
    n.action_count / r.mac_count AS count_per_mac,
    joules(n.energy_fj) / r.mac_count AS energy_per_mac_j,
    row_number() OVER (in_part ORDER BY n.energy_fj DESC, a.component, a.action, a.part, a.per) AS rank,
    row_number() OVER (
        PARTITION BY n.run_id, n.part_index, a.common_category
        ORDER BY n.energy_fj DESC, a.component, a.action, a.part, a.per
    ) AS category_rank,
    is_overhead(a.common_category) AS is_overhead,
    e.basis,
    e.source
FROM act AS n
JOIN asked AS r ON r.run_id = n.run_id
JOIN internal.action AS a ON a.action_id = n.action_id
JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = n.action_id
LEFT JOIN internal.workload_subgraph AS g
    ON $division <> 'run' AND g.workload_id = r.workload_id AND g.subgraph_index = n.subgraph_index
LEFT JOIN internal.workload_operator AS o
    ON $division = 'operator' AND o.workload_id = r.workload_id AND o.operator_index = n.part_index
WINDOW
    in_part AS (PARTITION BY n.run_id, n.part_index),
    in_category AS (PARTITION BY n.run_id, n.part_index, a.category)
ORDER BY r.position, n.run_id, n.part_index, n.energy_fj DESC, a.component, a.action, a.part, a.per
