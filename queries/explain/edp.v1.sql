/*
record = "EdpTerm"
summary = "Exact additive decomposition of the difference between two runs' energy-delay products"
grain = "one row per term; terms sum to twice the difference of E T, B minus A, exactly"
order = ["absolute difference_exact descending", "contributor", "per", "term"]
[columns]
term = { type = "VARCHAR", meaning = "cause as in explain.energy with energy, and as in explain.latency with latency, e.g. energy: count" }
contributor = { type = "VARCHAR", meaning = "component.action, or launch, compute or memory time" }
part_count = { type = "BIGINT", meaning = "number of subgraphs for a term of time; 1 for a term of energy" }
count_a = { heading = "count A", type = "DOUBLE", meaning = "count on A" }
count_b = { heading = "count B", type = "DOUBLE", meaning = "count on B" }
price_a = { shown = "in price_unit", heading = "each in A", type = "DOUBLE", null = true, meaning = "energy or time of one count on A; null without a count" }
price_b = { shown = "in price_unit", heading = "each in B", type = "DOUBLE", null = true, meaning = "energy or time of one count on B; null without a count" }
difference_exact = { type = "HUGEINT", meaning = "exact term of B minus A, twice, in fJ fs: an energy term x (T of A + T of B), a time term x (E of A + E of B); these are of the whole runs, also for a subgraph" }
difference_fraction = { type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
difference = { shown = "+" }
per = { shown = "words" }
*/
WITH halves AS (
    SELECT
        'energy: ' || t.term AS term,
        t.component || '.' || t.action AS contributor,
        t.per,
        CAST(1 AS BIGINT) AS part_count,
        t.count_a,
        t.count_b,
        t.energy_per_action_a_j AS price_a,
        t.energy_per_action_b_j AS price_b,
        CASE WHEN t.per = 's' THEN 'W' ELSE 'J' END AS price_unit,
        t.difference_fj * w.energy_weight AS difference_exact
    FROM explain.energy(run_a := $run_a, run_b := $run_b, subgraph := $subgraph) AS t
    CROSS JOIN cube.weight(run_a := $run_a, run_b := $run_b) AS w
    UNION ALL
    SELECT
        'latency: ' || d.term,
        d.contributor,
        d.per,
        d.part_count,
        d.count_a,
        d.count_b,
        d.price_a,
        d.price_b,
        d.price_unit,
        d.difference_exact * w.time_weight
    FROM explain.latency(run_a := $run_a, run_b := $run_b, subgraph := $subgraph) AS d
    CROSS JOIN cube.weight(run_a := $run_a, run_b := $run_b) AS w
)
SELECT
    term, contributor, per, part_count, count_a, count_b, price_a, price_b, price_unit, difference_exact,
    CAST(difference_exact AS DOUBLE) / 2e30 AS difference,
    'Js' AS unit,
    fraction(difference_exact, sum(difference_exact) OVER ()) AS difference_fraction
FROM halves
ORDER BY abs(difference_exact) DESC, contributor, per, term
