/*
name = "breakdown.action"
version = 1
schema = 1
summary = "Where the energy of each subgraph or operator goes, action by action: count x energy per action"
grain = "one row per part of a run and action; actions sum to their part and parts to the run, exactly"
order = ["run as in run_ids", "part_index", "energy_fj descending", "component", "action"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are left out" }
level = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph that is looked into; empty for all" }
[columns]
run_id = { type = "INTEGER", meaning = "number of the run" }
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index" }
name = { type = "VARCHAR", meaning = "of the operator, or of that which leads the subgraph" }
kind = { type = "VARCHAR", meaning = "operation of the operator, or of that which leads the subgraph: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", meaning = "operations of its subgraph in order" }
category = { type = "VARCHAR", meaning = "the architecture's own" }
common_category = { type = "VARCHAR", meaning = "compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, control or static" }
component = { type = "VARCHAR", meaning = "what acts" }
action = { type = "VARCHAR", meaning = "what it does" }
part = { type = "VARCHAR", meaning = "compute, memory, control or static" }
per = { type = "VARCHAR", meaning = "what one count is" }
action_count = { type = "DOUBLE", meaning = "how often" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "price of one" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact; the sum of lines that are each round(count x price)" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
share_fraction = { type = "DOUBLE", meaning = "of its subgraph or operator" }
run_fraction = { type = "DOUBLE", meaning = "of the run" }
whole_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "of the run, or of the subgraph that is looked into, exact" }
basis = { type = "VARCHAR", meaning = "where the price comes from: measured, published, derived, scaled, recalled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the price" }
*/
WITH act AS (
    SELECT
        l.run_id,
        l.subgraph_index,
        CASE WHEN $level = 'operator' THEN l.operator_index ELSE l.subgraph_index END AS part_index,
        a.category,
        a.common_category,
        a.component,
        a.action,
        a.part,
        a.per,
        sum(l.action_count ORDER BY l.operator_index) AS action_count,
        sum(l.energy_fj) AS energy_fj,
        any_value(e.energy_per_action_fj) AS price_fj,
        any_value(e.basis) AS basis,
        any_value(e.source) AS source
    FROM ledger_line AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = l.subgraph_index
    JOIN action AS a ON a.action_id = l.action_id
    JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE list_contains($run_ids, l.run_id) AND ($subgraph = '' OR g.name = $subgraph)
        AND CASE
            WHEN $level NOT IN ('subgraph', 'operator')
                THEN error('level is ' || $level || ', expected subgraph or operator')
            WHEN (SELECT count(DISTINCT workload_id) FROM run WHERE list_contains($run_ids, run_id)) > 32
                THEN error('the runs are of more than 32 workloads; ask about fewer models or batches at once')
            ELSE TRUE
        END
    GROUP BY ALL
),
whole AS (
    SELECT
        l.run_id,
        sum(l.energy_fj) AS run_fj,
        sum(CASE WHEN $subgraph = '' OR g.name = $subgraph THEN l.energy_fj ELSE 0 END) AS whole_fj
    FROM ledger_line AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = l.subgraph_index
    WHERE list_contains($run_ids, l.run_id)
    GROUP BY l.run_id
)
SELECT
    s.run_id,
    r.model,
    r.configured_hardware AS hardware,
    s.part_index,
    coalesce(o.name, g.name) AS name,
    coalesce(o.operation, split_part(g.pattern, '+', 1)) AS kind,
    g.pattern AS fusion_pattern,
    s.category,
    s.common_category,
    s.component,
    s.action,
    s.part,
    s.per,
    s.action_count,
    s.price_fj / 1e15 AS energy_per_action_j,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    fraction(s.energy_fj, sum(s.energy_fj) OVER (PARTITION BY s.run_id, s.part_index)) AS share_fraction,
    fraction(s.energy_fj, w.run_fj) AS run_fraction,
    w.whole_fj AS whole_energy_fj,
    s.basis,
    s.source
FROM act AS s
JOIN whole AS w ON w.run_id = s.run_id
JOIN run_configurations AS r ON r.run_id = s.run_id
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
LEFT JOIN workload_operator AS o
    ON $level = 'operator' AND o.workload_id = r.workload_id AND o.operator_index = s.part_index
ORDER BY list_position($run_ids, s.run_id), s.run_id, s.part_index, s.energy_fj DESC, s.component, s.action, s.part, s.per
