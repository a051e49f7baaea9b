/*
name = "explain.latency"
record = "LatencyTerm"
version = 1
schema = 1
summary = "Why one run takes longer than another: an exact additive decomposition over what bounds each subgraph"
grain = "one row per term and resource; terms sum to the difference B minus A, exactly"
order = ["absolute difference_exact descending", "place", "term"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph that is explained alone, as explain.subgraph has it; empty for the whole runs" }
[columns]
term = { type = "VARCHAR", meaning = "only in A or only in B (the resource bounds the subgraph on one side alone), count (more or less work), price (faster or slower work)" }
place = { type = "VARCHAR", meaning = "launch: fixed cost of kernels; compute or memory: the rest of each subgraph, whichever takes longer" }
per = { type = "VARCHAR", meaning = "what one count is" }
part_count = { type = "BIGINT", meaning = "subgraphs, matched by name" }
count_a = { type = "DOUBLE", meaning = "how many on A" }
count_b = { type = "DOUBLE", meaning = "how many on B" }
price_a = { type = "DOUBLE", null = true, meaning = "time of one on A; null without a count" }
price_b = { type = "DOUBLE", null = true, meaning = "time of one on B; null without a count" }
price_unit = { type = "VARCHAR", meaning = "of the prices" }
difference_exact = { type = "HUGEINT", meaning = "this term of B minus A, in fs, exact" }
difference = { type = "DOUBLE", meaning = "this term of B minus A, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit of difference" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the whole difference; negative where it goes the other way" }
*/
SELECT
    term,
    resource AS place,
    per,
    part_count,
    CAST(work_a AS DOUBLE) AS count_a,
    CAST(work_b AS DOUBLE) AS count_b,
    seconds(spent_a) / nullif(CAST(work_a AS DOUBLE), 0e0) AS price_a,
    seconds(spent_b) / nullif(CAST(work_b AS DOUBLE), 0e0) AS price_b,
    's' AS price_unit,
    difference_fs AS difference_exact,
    seconds(difference_fs) AS difference,
    's' AS unit,
    fraction(difference_fs, sum(difference_fs) OVER ()) AS share_fraction
FROM latency_terms($run_a, $run_b, $subgraph)
ORDER BY abs(difference_fs) DESC, place, term
