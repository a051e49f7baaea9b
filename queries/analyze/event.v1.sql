/*
record = "EventCount"
summary = "Events of a run: instructions, cache lines with hits and misses, branches, warps, tokens, tiles, padding"
grain = "one row per event; events that no operator causes are omitted"
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph; empty for all" }
[columns]
component = { type = "VARCHAR", meaning = "component of the event" }
per = { type = "VARCHAR", meaning = "unit of the event: instruction, line, warp, token ..." }
event_fraction = { type = "DOUBLE", null = true, meaning = "share of the event named in part_of; null if part_of is empty" }
energy_per_event_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy_j over event_count; null where no action pays for the event" }
run_fraction = { type = "DOUBLE", null = true, meaning = "share of the energy of the run or of the subgraph" }
meaning = { type = "VARCHAR", meaning = "description of the event" }
formula = { type = "VARCHAR", meaning = "count formula in terms of ledger actions, operator by operator, with the numbers of the hardware" }
energy_fj = { type = "BIGINT", null = true, unit = "fJ", meaning = "exact energy of the actions that pay for the event, which may pay for other events too; null where none does" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of the same actions" }
*/
WITH chosen AS (
    SELECT r.run_id, r.hardware_digest, v.architecture, g.subgraph_index
    FROM internal.run AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id
    WHERE r.run_id = $run_id AND $subgraph IN ('', g.name)
),
whole AS (
    SELECT sum(l.energy_fj) AS energy_fj
    FROM internal.ledger_line AS l
    JOIN chosen AS c ON c.subgraph_index = l.subgraph_index
    WHERE l.run_id = $run_id
),
counted AS (
    SELECT
        e.event_index,
        sum(e.event_count ORDER BY e.subgraph_index, e.operator_index) AS event_count,
        CAST(sum(e.event_energy_fj) AS BIGINT) AS energy_fj
    FROM event_counts AS e
    JOIN chosen AS c ON c.subgraph_index = e.subgraph_index
    WHERE e.run_id = $run_id
    GROUP BY e.event_index
),
shown AS (
    SELECT
        e.component,
        e.event,
        e.per,
        e.part_of,
        e.meaning,
        e.formula,
        e.divisor,
        e.event_index,
        coalesce(c.event_count, 0e0) AS event_count,
        c.energy_fj
    FROM events AS e
    LEFT JOIN counted AS c ON c.event_index = e.event_index
    WHERE e.architecture = (SELECT any_value(architecture) FROM chosen)
),
fact AS (
    SELECT f.quantity, printf('%g', f.value) || CASE WHEN f.unit = '1' THEN '' ELSE ' ' || f.unit END AS written
    FROM internal.hardware_fact AS f
    JOIN internal.run AS r ON r.hardware_digest = f.hardware_digest
    WHERE r.run_id = $run_id
)
SELECT
    s.component,
    s.event,
    s.per,
    s.event_count,
    s.part_of,
    s.event_count / nullif(p.event_count, 0e0) AS event_fraction,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    joules(s.energy_fj) / nullif(s.event_count, 0e0) AS energy_per_event_j,
    fraction(s.energy_fj, w.energy_fj) AS run_fraction,
    s.meaning,
    CASE WHEN s.divisor = '' THEN s.formula ELSE replace(s.formula, s.divisor, f.written) END AS formula,
    CAST(s.event_index AS INTEGER) AS event_index
FROM shown AS s
LEFT JOIN shown AS p ON p.component = s.component AND p.event = s.part_of
LEFT JOIN fact AS f ON f.quantity = s.divisor
CROSS JOIN whole AS w
WHERE s.event_count > 0e0 OR p.event_count > 0e0
ORDER BY s.event_index
