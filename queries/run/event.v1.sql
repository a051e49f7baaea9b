/*
summary = "Events of each subgraph of a run: instructions, cache lines with hits and misses, warps, tokens, tiles"
grain = "one row per subgraph and event in it; subgraphs sum to the run"
[columns]
subgraph_index = { type = "INTEGER", meaning = "number of the subgraph, in execution order" }
name = { type = "VARCHAR", meaning = "name of the operator that leads the subgraph" }
component = { type = "VARCHAR", meaning = "component of the event" }
per = { type = "VARCHAR", meaning = "unit of the event: instruction, line, warp, token ..." }
energy_fj = { type = "BIGINT", null = true, unit = "fJ", meaning = "exact energy of the actions that pay for the event, which may pay for other events too; null where none does" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of the same actions" }
*/
WITH counted AS (
    SELECT
        e.subgraph_index,
        e.component,
        e.event,
        e.per,
        e.part_of,
        sum(e.event_count ORDER BY e.operator_index) AS event_count,
        CAST(sum(e.event_energy_fj) AS BIGINT) AS energy_fj,
        e.event_index
    FROM event_counts AS e
    WHERE e.run_id = $run_id
    GROUP BY e.subgraph_index, e.component, e.event, e.per, e.part_of, e.event_index
)
SELECT
    c.subgraph_index,
    g.name,
    c.component,
    c.event,
    c.event_count,
    c.per,
    c.part_of,
    c.energy_fj,
    joules(c.energy_fj) AS energy_j,
    CAST(c.event_index AS INTEGER) AS event_index
FROM counted AS c
JOIN internal.run AS r ON r.run_id = $run_id
JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = c.subgraph_index
ORDER BY c.subgraph_index, c.event_index
