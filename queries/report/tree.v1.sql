/*
record = "EnergyLeaf"
summary = "Energy of several runs by common category, action and the largest subgraphs"
grain = "one row per run, action and subgraph, with one row for all smaller subgraphs of an action; the rows of a run sum to its energy, exactly"
order = ["run as in run_ids", "category_fj descending", "common_category", "action_fj descending", "action", "position"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`; refused ones are omitted" }
most = { type = "INTEGER", default = 3, meaning = "maximum subgraphs of an action that have their own row" }
[columns]
category_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the category, exact" }
action = { type = "VARCHAR", meaning = "COMPONENT.ACTION" }
action_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the action, exact" }
position = { type = "INTEGER", meaning = "position of the row in the action, 1 for the subgraph with the most energy; a row for several subgraphs is the last" }
subgraph = { type = "VARCHAR", null = true, meaning = "name of the subgraph; null where the row stands for all others" }
subgraph_count = { type = "INTEGER", meaning = "number of subgraphs that the row stands for" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the action in these subgraphs, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy of the action in these subgraphs" }
run_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's energy" }
*/
WITH act AS (
    SELECT
        run_id, common_category, full_action AS "action", part_index, any_value(position) AS run_position,
        any_value(model) AS model, any_value(hardware) AS hardware, any_value(name) AS name, sum(energy_fj) AS energy_fj
    FROM cube.cause(run_ids := $run_ids, division := 'subgraph')
    GROUP BY run_id, common_category, full_action, part_index
),
placed AS (
    SELECT
        run_id,
        common_category,
        "action",
        run_position,
        model,
        hardware,
        name,
        energy_fj,
        least(
            row_number() OVER (
                PARTITION BY run_id, common_category, "action" ORDER BY energy_fj DESC, part_index
            ),
            $most + 1
        ) AS "position"
    FROM act
),
merged AS (
    SELECT
        run_id,
        common_category,
        "action",
        "position",
        any_value(run_position) AS run_position,
        any_value(model) AS model,
        any_value(hardware) AS hardware,
        any_value(name) AS name,
        count(*) AS subgraph_count,
        sum(energy_fj) AS energy_fj
    FROM placed
    GROUP BY run_id, common_category, "action", "position"
),
summed AS (
    SELECT
        run_id,
        common_category,
        "action",
        "position",
        run_position,
        model,
        hardware,
        name,
        subgraph_count,
        energy_fj,
        sum(energy_fj) OVER (PARTITION BY run_id) AS run_fj,
        sum(energy_fj) OVER (PARTITION BY run_id, common_category) AS category_fj,
        sum(energy_fj) OVER (PARTITION BY run_id, common_category, "action") AS action_fj
    FROM merged
)
SELECT
    s.model, s.hardware, s.common_category, s.category_fj,
    s."action",
    s.action_fj,
    CAST(s."position" AS INTEGER) AS "position",
    CASE WHEN s.subgraph_count = 1 THEN s.name END AS subgraph,
    CAST(s.subgraph_count AS INTEGER) AS subgraph_count,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    fraction(s.energy_fj, s.run_fj) AS run_fraction,
    s.run_id
FROM summed AS s
ORDER BY
    s.run_position, s.run_id, s.category_fj DESC, s.common_category, s.action_fj DESC, s."action",
    s."position"
