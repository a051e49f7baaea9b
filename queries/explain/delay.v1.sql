/*
summary = "Time of two runs by subgraph and bottleneck, with the part of each difference due to the amount of work"
grain = "one row per subgraph and bottleneck that it has on A or on B; differences sum to B minus A, exactly"
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph requested in both; empty for all" }
[columns]
name = { type = "VARCHAR", meaning = "operator that leads the subgraph" }
resource = { type = "VARCHAR", meaning = "launch: fixed cost of kernels; memory: passes that the runtime adds; compute or memory: the rest of each subgraph, whichever takes longer" }
spent_a_fs = { type = "HUGEINT", unit = "fs", meaning = "exact time on A; 0 where this is not the bottleneck" }
spent_b_fs = { type = "HUGEINT", unit = "fs", meaning = "exact time on B" }
work_a = { type = "DOUBLE", meaning = "amount of work on A: kernels, MAC slots, or bytes that cross kernel boundaries or that passes move" }
work_b = { type = "DOUBLE", meaning = "amount of work on B" }
is_met = { type = "BOOLEAN", meaning = "true if the subgraph has this bottleneck on both" }
by_work_fs = { type = "HUGEINT", unit = "fs", meaning = "part of the difference due to the amount of work, at the mean of both speeds; 0 where only one has the bottleneck" }
*/
WITH spent AS (
    SELECT
        p.run_id,
        p.name,
        t.cause AS resource,
        t.exact AS spent_fs,
        CASE t.cause
            WHEN 'launch' THEN CAST(p.kernel_count AS DOUBLE)
            WHEN 'compute' THEN coalesce(p.executed_mac_count, 0e0)
            ELSE p.pass_bytes + CASE WHEN p.is_computing THEN 0e0 ELSE p.moved_bytes END
        END AS work_count
    FROM cube.part(run_ids := [$run_a, $run_b], energy := 'whole') AS p
    JOIN part_amounts AS t ON t.run_id = p.run_id AND t.subgraph_index = p.part_index AND t.amount = 'time'
    WHERE $subgraph IN ('', p.name)
),
met AS (
    SELECT
        name,
        resource,
        coalesce(sum(spent_fs) FILTER (WHERE run_id = $run_a), 0) AS spent_a_fs,
        coalesce(sum(spent_fs) FILTER (WHERE run_id = $run_b), 0) AS spent_b_fs,
        coalesce(sum(work_count) FILTER (WHERE run_id = $run_a), 0e0) AS work_a,
        coalesce(sum(work_count) FILTER (WHERE run_id = $run_b), 0e0) AS work_b
    FROM spent
    GROUP BY name, resource
)
SELECT
    name, resource, spent_a_fs, spent_b_fs, work_a, work_b,
    spent_a_fs > 0 AND spent_b_fs > 0 AS is_met,
    by_count(work_a, work_b, spent_a_fs, spent_b_fs) AS by_work_fs
FROM met
ORDER BY name, resource
