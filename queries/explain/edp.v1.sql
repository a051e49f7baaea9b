/*
name = "explain.edp"
record = "EdpTerm"
version = 1
schema = 1
summary = "Why one run has a larger energy-delay product than another: an exact additive decomposition"
grain = "one row per term; terms sum to twice the difference of E T, B minus A, exactly"
order = ["absolute difference_exact descending", "place", "per", "term"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph that is explained alone, as explain.subgraph has it; empty for the whole runs" }
[columns]
term = { type = "VARCHAR", meaning = "as of explain.energy with energy, and of explain.latency with latency, e.g. energy: count" }
place = { type = "VARCHAR", meaning = "component.action, or launch, compute or memory time" }
per = { type = "VARCHAR", meaning = "what one count is" }
part_count = { type = "BIGINT", meaning = "1, or subgraphs of a time" }
count_a = { type = "DOUBLE", meaning = "how many on A" }
count_b = { type = "DOUBLE", meaning = "how many on B" }
price_a = { type = "DOUBLE", null = true, meaning = "energy or time of one on A; null without a count" }
price_b = { type = "DOUBLE", null = true, meaning = "energy or time of one on B; null without a count" }
price_unit = { type = "VARCHAR", meaning = "of the prices" }
difference_exact = { type = "HUGEINT", meaning = "this term of B minus A, twice, in fJ fs, exact: an energy term x (T of A + T of B), a time term x (E of A + E of B)" }
difference = { type = "DOUBLE", meaning = "this term of B minus A, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of difference" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the whole difference; negative where it goes the other way" }
*/
WITH split AS (
    SELECT
        category_a, category_b, component, action, per, part, count_a, count_b, price_a, price_b, basis_a, basis_b,
        is_shared, by_count_fj, difference_fj
    FROM ledger_pairs($run_a, $run_b, $subgraph)
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
),
whole AS (
    SELECT
        (SELECT sum(energy_fj) FROM lines_of_pair($run_a, $run_b, $subgraph)) AS energy_fj,
        (SELECT sum(latency_fs) FROM subgraphs_of_pair($run_a, $run_b, $subgraph)) AS latency_fs
),
halves AS (
    SELECT
        'energy: ' || t.term AS term,
        t.component || '.' || t.action AS place,
        t.per,
        CAST(1 AS BIGINT) AS part_count,
        t.count_a,
        t.count_b,
        t.price_a / 1e15 AS price_a,
        t.price_b / 1e15 AS price_b,
        CASE WHEN t.per = 's' THEN 'W' ELSE 'J' END AS price_unit,
        CAST(t.difference_fj AS HUGEINT) * w.latency_fs AS difference_exact
    FROM terms AS t
    CROSS JOIN whole AS w
    WHERE t.difference_fj <> 0
    UNION ALL
    SELECT
        'latency: ' || d.term,
        d.resource,
        d.per,
        d.part_count,
        CAST(d.work_a AS DOUBLE),
        CAST(d.work_b AS DOUBLE),
        seconds(d.spent_a) / nullif(CAST(d.work_a AS DOUBLE), 0e0),
        seconds(d.spent_b) / nullif(CAST(d.work_b AS DOUBLE), 0e0),
        's',
        d.difference_fs * w.energy_fj
    FROM latency_terms($run_a, $run_b, $subgraph) AS d
    CROSS JOIN whole AS w
)
SELECT
    term,
    place,
    per,
    part_count,
    count_a,
    count_b,
    price_a,
    price_b,
    price_unit,
    difference_exact,
    CAST(difference_exact AS DOUBLE) / 2e30 AS difference,
    'Js' AS unit,
    fraction(difference_exact, sum(difference_exact) OVER ()) AS share_fraction
FROM halves
ORDER BY abs(difference_exact) DESC, place, per, term
