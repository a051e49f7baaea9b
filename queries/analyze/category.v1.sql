/*
name = "analyze.category"
record = "CategoryShare"
version = 1
schema = 1
summary = "Where a run's energy goes, by category of its architecture"
grain = "one row per category; categories sum to the run, exactly"
order = ["energy_fj descending", "category"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
category = { type = "VARCHAR", meaning = "the architecture's own" }
common_categories = { type = "VARCHAR", meaning = "those of all architectures that its actions belong to, most energy first" }
parts = { type = "VARCHAR", meaning = "which of compute, memory, control and static its actions are" }
kind_count = { type = "BIGINT", meaning = "different actions" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the run" }
largest_action = { type = "VARCHAR", meaning = "component.action that takes most of it" }
largest_action_fraction = { type = "DOUBLE", null = true, meaning = "how much of the category it takes" }
*/
WITH act AS (
    SELECT a.category, a.common_category, a.component, a.action, a.part, sum(l.energy_fj) AS energy_fj
    FROM run_action AS l
    JOIN action AS a ON a.action_id = l.action_id
    WHERE l.run_id = $run_id
    GROUP BY ALL
),
common AS (
    SELECT category, string_agg(common_category, ', ' ORDER BY energy_fj DESC, common_category) AS common_categories
    FROM (SELECT category, common_category, sum(energy_fj) AS energy_fj FROM act GROUP BY ALL)
    GROUP BY category
),
ranked AS (
    SELECT
        category,
        common_categories,
        component || '.' || action AS name,
        part,
        energy_fj,
        row_number() OVER (PARTITION BY category ORDER BY energy_fj DESC, component, action, part) AS rank
    FROM act
    JOIN common USING (category)
)
SELECT
    category,
    any_value(common_categories) AS common_categories,
    string_agg(DISTINCT part, ', ' ORDER BY part) AS parts,
    count(DISTINCT name) AS kind_count,
    sum(energy_fj) AS energy_fj,
    joules(sum(energy_fj)) AS energy_j,
    fraction(sum(energy_fj), sum(sum(energy_fj)) OVER ()) AS share_fraction,
    max(CASE WHEN rank = 1 THEN name END) AS largest_action,
    fraction(max(CASE WHEN rank = 1 THEN energy_fj END), sum(energy_fj))
        AS largest_action_fraction
FROM ranked
GROUP BY category
ORDER BY sum(energy_fj) DESC, category
