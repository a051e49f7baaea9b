/*
record = "Victory"
summary = "Kinds of subgraph or operator for which each chip has the lowest value of a metric"
grain = "one row per workload, hardware and kind of the workload"
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "metric as in `compare.part`: energy, latency, edp or memory" }
[columns]
kind = { type = "VARCHAR", meaning = "operation of the operator, or of the subgraph's leading operator" }
part_count = { type = "BIGINT", meaning = "number of parts of this kind" }
won_count = { type = "BIGINT", meaning = "number of parts of this kind for which this hardware alone has the least value" }
tied_count = { type = "BIGINT", meaning = "number of parts of this kind for which this hardware ties for the least value" }
won_fraction = { type = "DOUBLE", meaning = "won_count over part_count" }
verdict = { type = "VARCHAR", meaning = "share in words: all, most (more than half), some or none of this kind are won" }
hardware_won_count = { type = "HUGEINT", meaning = "number of parts of any kind for which this hardware alone has the least value" }
hardware_tied_count = { type = "HUGEINT", meaning = "number of parts of any kind for which this hardware ties for the least value" }
all_part_count = { type = "HUGEINT", meaning = "number of parts of the workload" }
*/
WITH counted AS (
    SELECT
        workload_id,
        model,
        hardware,
        kind,
        count(*) AS part_count,
        count(*) FILTER (WHERE rank = 1 AND tied_count = 1) AS won_count,
        count(*) FILTER (WHERE rank <= tied_count AND tied_count > 1) AS tied_count
    FROM compare.part(run_ids := $run_ids, level := $level, metric := $metric)
    GROUP BY workload_id, model, hardware, kind
)
SELECT
    model, hardware, kind, part_count, won_count, tied_count,
    won_count / part_count AS won_fraction,
    CASE
        WHEN won_count = part_count THEN 'all'
        WHEN 2 * won_count > part_count THEN 'most'
        WHEN won_count > 0 THEN 'some'
        ELSE 'none'
    END AS verdict,
    sum(won_count) OVER of_hardware AS hardware_won_count,
    sum(tied_count) OVER of_hardware AS hardware_tied_count,
    sum(part_count) OVER of_hardware AS all_part_count,
    workload_id
FROM counted
WINDOW of_hardware AS (PARTITION BY workload_id, hardware)
ORDER BY model, workload_id, hardware_won_count DESC, hardware, won_count DESC, kind
