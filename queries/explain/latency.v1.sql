/*
record = "LatencyTerm"
summary = "Exact additive decomposition of the difference between two runs' latencies by bottleneck of each subgraph"
grain = "one row per term and resource; terms sum to the difference B minus A, exactly"
order = ["absolute difference_exact descending", "contributor", "term"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
[columns]
term = { type = "VARCHAR", meaning = "cause: only in A or only in B (the resource is the bottleneck on one side alone), count (more or less work), price (faster or slower work)" }
contributor = { type = "VARCHAR", meaning = "launch: fixed cost of kernels; memory: passes that the runtime adds; compute or memory: the rest of each subgraph, whichever takes longer" }
part_count = { type = "BIGINT", meaning = "number of subgraphs, matched by name" }
price_a = { shown = "in price_unit", heading = "each in A", type = "DOUBLE", null = true, meaning = "time of one count on A; null without a count" }
price_b = { shown = "in price_unit", heading = "each in B", type = "DOUBLE", null = true, meaning = "time of one count on B; null without a count" }
difference_exact = { type = "HUGEINT", meaning = "exact term of B minus A, in fs" }
unit = { type = "VARCHAR", meaning = "SI unit of difference" }
difference_fraction = { type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
difference = { shown = "+" }
per = { shown = "words" }
*/
WITH parted AS (
    SELECT resource, spent_a_fs AS spent_a, spent_b_fs AS spent_b, work_a, work_b, is_met, by_work_fs
    FROM explain.delay(run_a := $run_a, run_b := $run_b, subgraph := $subgraph)
),
delay AS (
    SELECT
        CASE WHEN spent_b = 0 THEN 'only in A' ELSE 'only in B' END AS term,
        resource, spent_a, spent_b, work_a, work_b,
        spent_b - spent_a AS difference_fs
    FROM parted
    WHERE NOT is_met
    UNION ALL
    SELECT 'count', resource, spent_a, spent_b, work_a, work_b, by_work_fs
    FROM parted
    WHERE is_met
    UNION ALL
    SELECT 'price', resource, spent_a, spent_b, work_a, work_b, spent_b - spent_a - by_work_fs
    FROM parted
    WHERE is_met
),
summed AS (
    SELECT
        term,
        resource,
        CAST(count(*) AS BIGINT) AS part_count,
        CAST(sum(CAST(work_a AS DECIMAL(38, 6))) AS DOUBLE) AS work_a,
        CAST(sum(CAST(work_b AS DECIMAL(38, 6))) AS DOUBLE) AS work_b,
        seconds(sum(spent_a)) AS spent_a,
        seconds(sum(spent_b)) AS spent_b,
        sum(difference_fs) AS difference_fs
    FROM delay
    GROUP BY term, resource
    HAVING sum(difference_fs) <> 0
)
SELECT
    term,
    resource AS contributor,
    CASE resource WHEN 'launch' THEN 'kernel' WHEN 'compute' THEN 'MAC slot' ELSE 'B' END AS per,
    part_count,
    work_a AS count_a,
    work_b AS count_b,
    spent_a / nullif(work_a, 0e0) AS price_a,
    spent_b / nullif(work_b, 0e0) AS price_b,
    's' AS price_unit,
    difference_fs AS difference_exact,
    seconds(difference_fs) AS difference,
    's' AS unit,
    fraction(difference_fs, sum(difference_fs) OVER ()) AS difference_fraction
FROM summed
ORDER BY abs(difference_fs) DESC, contributor, term
