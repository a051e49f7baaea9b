/*
record = "BottleneckShare"
summary = "Time of a run by resource, and its subgraphs and their energy by bottleneck"
grain = "one row per bottleneck, three in all; latencies and energies sum to the run, exactly"
table = ["bottleneck", "subgraph_count", "latency_s", "latency_fraction", "energy_j", "energy_fraction", "busy_s"]
order = ["compute, memory, launch"]
[columns]
bottleneck = { type = "VARCHAR", meaning = "compute, memory or launch" }
subgraph_count = { type = "BIGINT", meaning = "number of subgraphs with this bottleneck" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "part of the latency that this resource takes, exact: launches first, then passes and the larger of computing and memory" }
latency_s = { heading = "time", type = "DOUBLE", unit = "s", meaning = "part of the latency that this resource takes" }
latency_fraction = { heading = "time share", type = "DOUBLE", null = true, meaning = "share of the run's latency" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the subgraphs with this bottleneck, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy of the subgraphs with this bottleneck" }
energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's energy" }
busy_s = { heading = "such time in all subgraphs (overlapping)", type = "DOUBLE", unit = "s", meaning = "time of this resource in all subgraphs; compute and memory overlap" }
*/
WITH spent AS (
    SELECT
        part_index, bottleneck, latency_fs, energy_fj, compute_s, memory_s, pass_s, launch_s,
        least(latency_fs, CAST(round(launch_s * 1e15) AS BIGINT)) AS launch_fs,
        least(
            latency_fs - launch_fs,
            CASE WHEN is_computing THEN CAST(round(pass_s * 1e15) AS BIGINT) ELSE latency_fs END
        ) AS memory_fs
    FROM cube.part(run_ids := [$run_id])
),
part AS (
    SELECT
        part_index,
        bottleneck,
        energy_fj,
        unnest([
            {'position': 1, 'bottleneck': 'compute', 'busy_s': compute_s, 'spent_fs': latency_fs - launch_fs - memory_fs},
            {'position': 2, 'bottleneck': 'memory', 'busy_s': memory_s + pass_s, 'spent_fs': memory_fs},
            {'position': 3, 'bottleneck': 'launch', 'busy_s': launch_s, 'spent_fs': launch_fs}
        ]) AS resource
    FROM spent
),
bound AS (
    SELECT
        p.resource.position AS position,
        p.resource.bottleneck AS bottleneck,
        count(*) FILTER (WHERE p.bottleneck = p.resource.bottleneck) AS subgraph_count,
        sum(p.resource.spent_fs) AS latency_fs,
        sum(CASE WHEN p.bottleneck = p.resource.bottleneck THEN p.energy_fj ELSE 0 END) AS energy_fj,
        sum(p.resource.busy_s ORDER BY p.part_index) AS busy_s
    FROM part AS p
    GROUP BY p.resource.position, p.resource.bottleneck
)
SELECT
    bottleneck, subgraph_count, latency_fs,
    seconds(latency_fs) AS latency_s,
    fraction(latency_fs, sum(latency_fs) OVER ()) AS latency_fraction,
    energy_fj,
    joules(energy_fj) AS energy_j,
    fraction(energy_fj, sum(energy_fj) OVER ()) AS energy_fraction,
    busy_s
FROM bound
ORDER BY position
