/*
record = "MemoryTerm"
summary = "Exact additive decomposition of the difference between two runs' peak memory"
grain = "one row per nonzero term; terms sum to the difference B minus A, exactly"
order = ["absolute difference_exact descending", "contributor", "term"]
[columns]
term = { type = "VARCHAR", meaning = "cause: count (more or fewer elements) or price (more or fewer bytes per element)" }
contributor = { type = "VARCHAR", meaning = "weights, or activations at their peak" }
part_count = { type = "BIGINT", meaning = "always 1" }
price_a = { shown = "in price_unit", type = "DOUBLE", null = true, meaning = "bytes per element on A; null without a count" }
price_b = { shown = "in price_unit", type = "DOUBLE", null = true, meaning = "bytes per element on B; null without a count" }
difference_exact = { type = "HUGEINT", meaning = "exact term of B minus A, in bytes" }
unit = { type = "VARCHAR", meaning = "SI unit of difference" }
difference_fraction = { type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
per = { shown = "words" }
*/
WITH side AS (
    SELECT
        r.run_id,
        unnest([
            {'contributor': 'weights', 'per': 'parameter', 'work': w.parameter_count, 'held': r.weight_bytes},
            {'contributor': 'activations', 'per': 'B', 'work': r.activation_bytes, 'held': r.activation_bytes}
        ]) AS one
    FROM internal.run AS r
    JOIN internal.workload AS w ON w.workload_id = r.workload_id
    WHERE r.run_id IN ($run_a, $run_b) AND r.refusal IS NULL
),
met AS (
    SELECT
        a.one.contributor AS contributor,
        a.one.per AS per,
        CAST(a.one.work AS DOUBLE) AS work_a,
        CAST(b.one.work AS DOUBLE) AS work_b,
        CAST(a.one.held AS HUGEINT) AS held_a,
        CAST(b.one.held AS HUGEINT) AS held_b
    FROM side AS a
    JOIN side AS b ON b.run_id = $run_b AND b.one.contributor = a.one.contributor
    WHERE a.run_id = $run_a
),
parted AS (
    SELECT
        contributor, per, work_a, work_b, held_a, held_b,
        by_count(work_a, work_b, held_a, held_b) AS by_work
    FROM met
),
terms AS (
    SELECT 'count' AS term, contributor, per, work_a, work_b, held_a, held_b, by_work AS difference_exact
    FROM parted
    UNION ALL
    SELECT 'price', contributor, per, work_a, work_b, held_a, held_b, held_b - held_a - by_work
    FROM parted
)
SELECT
    term,
    contributor,
    per,
    CAST(1 AS BIGINT) AS part_count,
    work_a AS count_a,
    work_b AS count_b,
    CAST(held_a AS DOUBLE) / nullif(work_a, 0e0) AS price_a,
    CAST(held_b AS DOUBLE) / nullif(work_b, 0e0) AS price_b,
    'B' AS price_unit,
    difference_exact,
    CAST(difference_exact AS DOUBLE) AS difference,
    'B' AS unit,
    fraction(difference_exact, sum(difference_exact) OVER ()) AS difference_fraction
FROM terms
WHERE difference_exact <> 0
ORDER BY abs(difference_exact) DESC, contributor, term
