/*
name = "breakdown.category"
version = 1
schema = 1
summary = "Where the energy of each subgraph or operator goes, by category"
grain = "one row per part of a run and category; categories sum to their part and parts to the run, exactly"
order = ["run as in run_ids", "part_index", "energy_fj descending", "category"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are left out" }
level = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph that is looked into; empty for all" }
is_common = { type = "BOOLEAN", default = false, meaning = "by the categories that all architectures share, not by their own" }
[columns]
run_id = { type = "INTEGER", meaning = "number of the run" }
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index" }
name = { type = "VARCHAR", meaning = "of the operator, or of that which leads the subgraph" }
kind = { type = "VARCHAR", meaning = "operation of the operator, or of that which leads the subgraph: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", meaning = "operations of its subgraph in order" }
category = { type = "VARCHAR", meaning = "the architecture's own, or one that all share" }
common_categories = { type = "VARCHAR", meaning = "those that all architectures share and its actions belong to, most energy first" }
kind_count = { type = "BIGINT", meaning = "actions in it" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
share_fraction = { type = "DOUBLE", meaning = "of its subgraph or operator" }
run_fraction = { type = "DOUBLE", meaning = "of the run" }
whole_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "of the run, or of the subgraph that is looked into, exact" }
largest_action = { type = "VARCHAR", meaning = "component.action that takes most of it" }
largest_action_fraction = { type = "DOUBLE", meaning = "of the category in this part" }
*/
WITH act AS (
    SELECT
        l.run_id,
        l.subgraph_index,
        CASE WHEN $level = 'operator' THEN l.operator_index ELSE l.subgraph_index END AS part_index,
        CASE WHEN $is_common THEN a.common_category ELSE a.category END AS category,
        a.common_category,
        a.component || '.' || a.action AS action,
        sum(l.energy_fj) AS energy_fj
    FROM ledger_line AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = l.subgraph_index
    JOIN action AS a ON a.action_id = l.action_id
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
shared AS (
    SELECT run_id, part_index, category, common_category, sum(energy_fj) AS energy_fj
    FROM act
    GROUP BY ALL
),
named AS (
    SELECT
        run_id,
        part_index,
        category,
        string_agg(common_category, ', ' ORDER BY energy_fj DESC, common_category) AS common_categories
    FROM shared
    GROUP BY ALL
),
summed AS (
    SELECT
        run_id,
        subgraph_index,
        part_index,
        category,
        count(*) AS kind_count,
        sum(energy_fj) AS energy_fj,
        min({'size': -energy_fj, 'action': action}) AS largest
    FROM act
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
    n.common_categories,
    s.kind_count,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    fraction(s.energy_fj, sum(s.energy_fj) OVER (PARTITION BY s.run_id, s.part_index)) AS share_fraction,
    fraction(s.energy_fj, w.run_fj) AS run_fraction,
    w.whole_fj AS whole_energy_fj,
    s.largest.action AS largest_action,
    fraction(-s.largest.size, s.energy_fj) AS largest_action_fraction
FROM summed AS s
JOIN named AS n ON n.run_id = s.run_id AND n.part_index = s.part_index AND n.category = s.category
JOIN whole AS w ON w.run_id = s.run_id
JOIN run_configurations AS r ON r.run_id = s.run_id
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
LEFT JOIN workload_operator AS o
    ON $level = 'operator' AND o.workload_id = r.workload_id AND o.operator_index = s.part_index
ORDER BY list_position($run_ids, s.run_id), s.run_id, s.part_index, s.energy_fj DESC, s.category
