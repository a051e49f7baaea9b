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
WITH time AS (
    SELECT
        run_id,
        name,
        latency_fs,
        least(latency_fs, CAST(round(launch_s * 1e15) AS BIGINT)) AS launch_fs,
        is_computing,
        kernel_count,
        executed_mac_count,
        CAST(round(pass_s * 1e15) AS BIGINT) AS pass_fs,
        moved_bytes,
        pass_bytes
    FROM cube.part(run_ids := [$run_a, $run_b], energy := 'whole')
    WHERE $subgraph IN ('', name)
),
spent AS (
    SELECT run_id, name, 'launch' AS resource, launch_fs AS spent_fs, CAST(kernel_count AS DOUBLE) AS work_count
    FROM time
    UNION ALL
    SELECT
        run_id, name, 'compute', latency_fs - launch_fs - least(pass_fs, latency_fs - launch_fs),
        coalesce(executed_mac_count, 0e0)
    FROM time
    WHERE is_computing
    UNION ALL
    SELECT
        run_id,
        name,
        'memory',
        CASE WHEN is_computing THEN least(pass_fs, latency_fs - launch_fs) ELSE latency_fs - launch_fs END,
        pass_bytes + CASE WHEN is_computing THEN 0e0 ELSE moved_bytes END
    FROM time
),
met AS (
    SELECT
        coalesce(a.name, b.name) AS name,
        coalesce(a.resource, b.resource) AS resource,
        coalesce(a.spent_fs, 0) AS spent_a_fs,
        coalesce(b.spent_fs, 0) AS spent_b_fs,
        coalesce(a.work_count, 0e0) AS work_a,
        coalesce(b.work_count, 0e0) AS work_b,
        a.spent_fs IS NOT NULL AND b.spent_fs IS NOT NULL AS is_met
    FROM (SELECT name, resource, spent_fs, work_count FROM spent WHERE run_id = $run_a AND spent_fs > 0) AS a
    FULL JOIN (SELECT name, resource, spent_fs, work_count FROM spent WHERE run_id = $run_b AND spent_fs > 0) AS b
        ON b.name = a.name AND b.resource = a.resource
)
SELECT
    name, resource,
    CAST(spent_a_fs AS HUGEINT) AS spent_a_fs,
    CAST(spent_b_fs AS HUGEINT) AS spent_b_fs,
    work_a, work_b, is_met,
    CAST(
        CASE
            WHEN NOT is_met OR work_a = work_b OR work_a = 0e0 OR work_b = 0e0 THEN 0
            ELSE CAST((work_b - work_a) * ((spent_a_fs / work_a + spent_b_fs / work_b) / 2e0) AS BIGINT)
        END AS HUGEINT
    ) AS by_work_fs
FROM met
ORDER BY name, resource
