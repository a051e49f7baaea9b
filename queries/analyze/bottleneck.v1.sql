/*
record = "BottleneckShare"
summary = "Subgraphs, time and energy of a run by bottleneck"
grain = "one row per bottleneck, three in all; latencies and energies sum to the run, exactly"
order = ["compute, memory, launch"]
[columns]
bottleneck = { type = "VARCHAR", meaning = "compute, memory or launch" }
subgraph_count = { type = "BIGINT", meaning = "number of subgraphs with this bottleneck" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "latency of the subgraphs with this bottleneck, exact" }
latency_s = { heading = "time", type = "DOUBLE", unit = "s", meaning = "latency of the subgraphs with this bottleneck" }
latency_fraction = { heading = "time share", type = "DOUBLE", null = true, meaning = "share of the run's latency" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the subgraphs with this bottleneck, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy of the subgraphs with this bottleneck" }
energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's energy" }
busy_s = { heading = "such time in all subgraphs (overlapping)", type = "DOUBLE", unit = "s", meaning = "time of this resource in all subgraphs; compute and memory overlap" }
*/
WITH part AS (
    SELECT
        part_index,
        bottleneck,
        latency_fs,
        energy_fj,
        unnest([
            {'position': 1, 'bottleneck': 'compute', 'busy_s': compute_s},
            {'position': 2, 'bottleneck': 'memory', 'busy_s': memory_s + pass_s},
            {'position': 3, 'bottleneck': 'launch', 'busy_s': launch_s}
        ]) AS resource
    FROM cube.part(run_ids := [$run_id])
),
bound AS (
    SELECT
        p.resource.position AS position,
        p.resource.bottleneck AS bottleneck,
        count(*) FILTER (WHERE p.bottleneck = p.resource.bottleneck) AS subgraph_count,
        sum(CASE WHEN p.bottleneck = p.resource.bottleneck THEN p.latency_fs ELSE 0 END) AS latency_fs,
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
