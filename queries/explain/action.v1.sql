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
WITH side AS (
    SELECT
        run_id,
        component,
        action,
        category,
        part,
        per,
        sum(action_count) AS action_count,
        max(price_fj) AS price_fj,
        max(basis) AS basis,
        sum(energy_fj) AS energy_fj
    FROM cube.cause(run_ids := [$run_a, $run_b], within := $subgraph)
    GROUP BY ALL
),
joined AS (
    SELECT
        coalesce(a.component, b.component) AS component,
        coalesce(a.action, b.action) AS action,
        coalesce(a.part, b.part) AS part,
        coalesce(a.per, b.per) AS per,
        a.category AS category_a,
        b.category AS category_b,
        coalesce(a.action_count, 0e0) AS count_a,
        coalesce(b.action_count, 0e0) AS count_b,
        a.price_fj AS price_a,
        b.price_fj AS price_b,
        a.basis AS basis_a,
        b.basis AS basis_b,
        CAST(coalesce(b.energy_fj, 0) - coalesce(a.energy_fj, 0) AS BIGINT) AS difference_fj
    FROM (
        SELECT component, action, part, per, category, action_count, price_fj, basis, energy_fj
        FROM side
        WHERE run_id = $run_a
    ) AS a
    FULL JOIN (
        SELECT component, action, part, per, category, action_count, price_fj, basis, energy_fj
        FROM side
        WHERE run_id = $run_b
    ) AS b ON b.component = a.component AND b.action = a.action AND b.part = a.part AND b.per = a.per
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
