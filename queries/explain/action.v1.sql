/*
summary = "Energy of two runs by action, with each side's count and energy per action, and the part of the difference due to counts"
grain = "one row per action of either run; differences sum to B minus A, exactly"
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph requested in both; empty for all" }
[columns]
category_a = { type = "VARCHAR", null = true, meaning = "category of A's architecture; null where only B has the action" }
category_b = { type = "VARCHAR", null = true, meaning = "category of B's architecture; null where only A has the action" }
count_a = { type = "DOUBLE", meaning = "count in A; 0 without the action" }
count_b = { type = "DOUBLE", meaning = "count in B; 0 without the action" }
price_a = { type = "DOUBLE", null = true, unit = "fJ", meaning = "energy of one action in A, at the voltage of A; null where only B has the action" }
price_b = { type = "DOUBLE", null = true, unit = "fJ", meaning = "energy of one action in B, at the voltage of B; null where only A has the action" }
basis_a = { type = "VARCHAR", null = true, meaning = "basis of A's energy per action" }
basis_b = { type = "VARCHAR", null = true, meaning = "basis of B's energy per action" }
difference_fj = { type = "BIGINT", unit = "fJ", meaning = "difference B minus A, exact" }
is_shared = { type = "BOOLEAN", meaning = "true if both have the action, except static power" }
by_count_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "part of the difference due to counts, at the mean of both energies per action; null where one run lacks the action" }
*/
WITH joined AS (
    SELECT
        component,
        action,
        part,
        per,
        max(category) FILTER (WHERE run_id = $run_a) AS category_a,
        max(category) FILTER (WHERE run_id = $run_b) AS category_b,
        coalesce(sum(action_count) FILTER (WHERE run_id = $run_a), 0e0) AS count_a,
        coalesce(sum(action_count) FILTER (WHERE run_id = $run_b), 0e0) AS count_b,
        max(price_fj) FILTER (WHERE run_id = $run_a) AS price_a,
        max(price_fj) FILTER (WHERE run_id = $run_b) AS price_b,
        max(basis) FILTER (WHERE run_id = $run_a) AS basis_a,
        max(basis) FILTER (WHERE run_id = $run_b) AS basis_b,
        CAST(
            coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_b), 0)
            - coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_a), 0) AS BIGINT
        ) AS difference_fj
    FROM cube.cause(run_ids := [$run_a, $run_b], within := $subgraph)
    GROUP BY component, action, part, per
)
SELECT
    component, action, part, per, category_a, category_b, count_a, count_b, price_a, price_b, basis_a, basis_b,
    difference_fj,
    price_a IS NOT NULL AND price_b IS NOT NULL AND part <> 'static' AS is_shared,
    CASE
        WHEN price_a = price_b THEN difference_fj
        WHEN count_a = count_b THEN 0
        ELSE CAST((count_b - count_a) * ((price_a + price_b) / 2e0) AS HUGEINT)
    END AS by_count_fj
FROM joined
ORDER BY component, action, part, per
