/*
name = "breakdown.category"
record = "PartCategory"
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
share_fraction = { type = "DOUBLE", null = true, meaning = "of its subgraph or operator" }
run_fraction = { type = "DOUBLE", null = true, meaning = "of the run" }
whole_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "of the run, or of the subgraph that is looked into, exact" }
largest_action = { type = "VARCHAR", meaning = "component.action that takes most of it" }
largest_action_fraction = { type = "DOUBLE", null = true, meaning = "of the category in this part" }
*/
WITH act AS (
    SELECT
        l.run_id,
        l.part_index,
        CASE WHEN $is_common THEN a.common_category ELSE a.category END AS category,
        a.common_category,
        a.component || '.' || a.action AS action,
        l.run_fj,
        l.whole_fj,
        sum(l.energy_fj) AS energy_fj
    FROM lines_of_parts($run_ids, $level, $subgraph) AS l
    JOIN action AS a ON a.action_id = l.action_id
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
        part_index,
        category,
        run_fj,
        whole_fj,
        count(*) AS kind_count,
        sum(energy_fj) AS energy_fj,
        min({'size': -energy_fj, 'action': action}) AS largest
    FROM act
    GROUP BY ALL
)
SELECT
    s.run_id,
    p.model,
    p.hardware,
    s.part_index,
    p.name,
    p.kind,
    p.fusion_pattern,
    s.category,
    n.common_categories,
    s.kind_count,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    fraction(s.energy_fj, sum(s.energy_fj) OVER (PARTITION BY s.run_id, s.part_index)) AS share_fraction,
    fraction(s.energy_fj, s.run_fj) AS run_fraction,
    s.whole_fj AS whole_energy_fj,
    s.largest.action AS largest_action,
    fraction(-s.largest.size, s.energy_fj) AS largest_action_fraction
FROM summed AS s
JOIN named AS n ON n.run_id = s.run_id AND n.part_index = s.part_index AND n.category = s.category
JOIN names_of_parts($run_ids, $level) AS p ON p.run_id = s.run_id AND p.part_index = s.part_index
JOIN places_of($run_ids) AS o ON o.run_id = s.run_id
ORDER BY o.position, s.run_id, s.part_index, s.energy_fj DESC, s.category
