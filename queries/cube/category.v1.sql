/*
summary = "Energy of runs by category, of the whole run or of each subgraph or operator"
grain = "one row per evaluated run, part and category; energies sum to the run, exactly"
[parameters]
is_common = { type = "BOOLEAN", default = false, meaning = "true for categories that all architectures share, false for the architecture's own" }
[columns]
name = { type = "VARCHAR", of = "subgraph, operator", meaning = "name of the operator, or of the subgraph's leading operator" }
operation = { type = "VARCHAR", of = "subgraph, operator", meaning = "operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", of = "subgraph, operator", meaning = "operations of its subgraph in order" }
category = { type = "VARCHAR", meaning = "category of the architecture, or the common one" }
common_categories = { type = "VARCHAR", meaning = "common categories of its actions, most energy first" }
parts = { type = "VARCHAR", meaning = "part of its actions: compute, memory, control or static" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy, exact" }
energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy of its part: run, subgraph or operator" }
largest_action = { type = "VARCHAR", meaning = "component.action with the most energy in the category" }
largest_action_fraction = { type = "DOUBLE", null = true, meaning = "share of that action in the category" }
*/
WITH act AS MATERIALIZED (
    SELECT
        run_id, position, model, hardware, part_index, name, operation, fusion_pattern,
        CASE WHEN $is_common THEN common_category ELSE category END AS category,
        common_category, full_action, part, energy_fj, run_fj, whole_energy_fj
    FROM cube.cause(run_ids := $run_ids, division := $division, within := $within)
),
common AS (
    SELECT
        run_id,
        part_index,
        category,
        string_agg(common_category, ', ' ORDER BY energy_fj DESC, common_category) AS common_categories
    FROM (
        SELECT run_id, part_index, category, common_category, sum(energy_fj) AS energy_fj
        FROM act
        GROUP BY ALL
    )
    GROUP BY run_id, part_index, category
),
summed AS (
    SELECT
        run_id,
        any_value(position) AS position,
        any_value(model) AS model,
        any_value(hardware) AS hardware,
        part_index,
        any_value(name) AS name,
        any_value(operation) AS operation,
        any_value(fusion_pattern) AS fusion_pattern,
        category,
        string_agg(DISTINCT part, ', ' ORDER BY part) AS parts,
        count(DISTINCT full_action) AS kind_count,
        sum(energy_fj) AS energy_fj,
        any_value(run_fj) AS run_fj,
        any_value(whole_energy_fj) AS whole_energy_fj,
        min({'size': -energy_fj, 'action': full_action}) AS largest
    FROM act
    GROUP BY run_id, part_index, category
)
SELECT
    s.run_id,
    s.position,
    s.model,
    s.hardware,
    s.part_index,
    s.name,
    s.operation,
    s.fusion_pattern,
    s.category,
    c.common_categories,
    s.parts,
    s.kind_count,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    fraction(s.energy_fj, sum(s.energy_fj) OVER (PARTITION BY s.run_id, s.part_index)) AS energy_fraction,
    fraction(s.energy_fj, s.run_fj) AS run_fraction,
    s.whole_energy_fj,
    s.largest.action AS largest_action,
    fraction(-s.largest.size, s.energy_fj) AS largest_action_fraction
FROM summed AS s
JOIN common AS c ON c.run_id = s.run_id AND c.part_index = s.part_index AND c.category = s.category
ORDER BY s.position, s.run_id, s.part_index, s.energy_fj DESC, s.category
