/*
name = "explain.category"
record = "CategoryDifference"
version = 1
schema = 1
summary = "Energy of two runs by common category, and the difference"
grain = "one row per category of either; categories sum to the difference B minus A, exactly"
order = ["absolute difference_fj descending", "category"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph that is explained alone, as explain.subgraph has it; empty for the whole runs" }
[columns]
category = { type = "VARCHAR", meaning = "common to all architectures: compute, register, unit_memory (of one unit), chip_memory (of all), interconnect, off_chip_memory, control, board or static" }
categories_a = { type = "VARCHAR", meaning = "what the architecture of A calls it, most energy first; empty where it has none" }
categories_b = { type = "VARCHAR", meaning = "what the architecture of B calls it" }
energy_a_fj = { type = "HUGEINT", unit = "fJ", meaning = "on A, exact" }
energy_b_fj = { type = "HUGEINT", unit = "fJ", meaning = "on B, exact" }
difference_fj = { type = "HUGEINT", unit = "fJ", meaning = "B minus A, exact" }
energy_a_j = { type = "DOUBLE", unit = "J", meaning = "on A" }
energy_b_j = { type = "DOUBLE", unit = "J", meaning = "on B" }
difference_j = { type = "DOUBLE", unit = "J", meaning = "B minus A" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the whole difference; negative where it goes the other way" }
*/
WITH act AS (
    SELECT run_id, common_category, category, sum(energy_fj) AS energy_fj
    FROM cube.cause(run_ids := [$run_a, $run_b], within := $subgraph)
    GROUP BY ALL
),
summed AS (
    SELECT
        common_category AS category,
        string_agg(category, ', ' ORDER BY energy_fj DESC, category) FILTER (WHERE run_id = $run_a) AS categories_a,
        string_agg(category, ', ' ORDER BY energy_fj DESC, category) FILTER (WHERE run_id = $run_b) AS categories_b,
        coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_a), 0) AS energy_a_fj,
        coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_b), 0) AS energy_b_fj
    FROM act
    GROUP BY common_category
)
SELECT
    category,
    coalesce(categories_a, '') AS categories_a,
    coalesce(categories_b, '') AS categories_b,
    energy_a_fj,
    energy_b_fj,
    energy_b_fj - energy_a_fj AS difference_fj,
    joules(energy_a_fj) AS energy_a_j,
    joules(energy_b_fj) AS energy_b_j,
    joules(energy_b_fj - energy_a_fj) AS difference_j,
    fraction(energy_b_fj - energy_a_fj, sum(energy_b_fj - energy_a_fj) OVER ())
        AS share_fraction
FROM summed
ORDER BY abs(energy_b_fj - energy_a_fj) DESC, category
