/*
record = "EnergyTerm"
summary = "Exact additive decomposition of the difference between two runs' energies"
grain = "one row per term; terms sum to the difference B minus A, exactly"
order = ["absolute difference_fj descending", "component", "action", "term"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
[columns]
term = { type = "VARCHAR", meaning = "only in A, only in B, count (same action, different count), price (same action, different energy), or static" }
category_a = { heading = "category", type = "VARCHAR", null = true, meaning = "category of the action on A; null if A does not have the action" }
category_b = { type = "VARCHAR", null = true, meaning = "category of the action on B; null if B does not have the action" }
count_a = { heading = "count A", type = "DOUBLE", meaning = "count on A" }
count_b = { heading = "count B", type = "DOUBLE", meaning = "count on B" }
energy_per_action_a_j = { heading = "energy each of A", type = "DOUBLE", null = true, unit = "J", meaning = "energy per action on A, at the voltage of its run" }
energy_per_action_b_j = { heading = "energy each of B", type = "DOUBLE", null = true, unit = "J", meaning = "energy per action on B, at the voltage of its run" }
basis_a = { heading = "basis", type = "VARCHAR", null = true, meaning = "basis of the energy per action on A" }
basis_b = { type = "VARCHAR", null = true, meaning = "basis of the energy per action on B" }
difference_fj = { type = "HUGEINT", unit = "fJ", meaning = "term of B minus A" }
difference_j = { shown = "+", type = "DOUBLE", unit = "J", meaning = "term of B minus A" }
difference_fraction = { type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
per = { shown = "words" }
*/
WITH split AS (
    SELECT
        component, action, part, per, category_a, category_b, count_a, count_b, price_a, price_b, basis_a, basis_b,
        difference_fj, is_shared, by_count_fj
    FROM explain.action(run_a := $run_a, run_b := $run_b, subgraph := $subgraph)
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
)
SELECT
    term, category_a, category_b, component, action, per, part, count_a, count_b,
    price_a / 1e15 AS energy_per_action_a_j,
    price_b / 1e15 AS energy_per_action_b_j,
    basis_a, basis_b, difference_fj,
    joules(difference_fj) AS difference_j,
    fraction(difference_fj, sum(difference_fj) OVER ()) AS difference_fraction
FROM terms
WHERE difference_fj <> 0
ORDER BY abs(difference_fj) DESC, component, action, term
