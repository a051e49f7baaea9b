/*
record = "Traffic"
summary = "Bytes of each memory of two runs"
grain = "one row per memory action that is counted in bytes"
order = ["absolute difference_bytes descending", "component", "action"]
[columns]
bytes_a = { heading = "A", type = "DOUBLE", null = true, unit = "B", meaning = "bytes on A; null where A has no such action" }
bytes_b = { heading = "B", type = "DOUBLE", null = true, unit = "B", meaning = "bytes on B; null where B has no such action" }
difference_bytes = { shown = "+", type = "DOUBLE", unit = "B", meaning = "difference B minus A" }
energy_a_j = { heading = "energy A", type = "DOUBLE", unit = "J", meaning = "energy on A" }
energy_b_j = { heading = "energy B", type = "DOUBLE", unit = "J", meaning = "energy on B" }
is_off_chip = { type = "BOOLEAN", meaning = "true if the action reads or writes DRAM" }
component = { heading = "memory" }
*/
WITH side AS (
    SELECT run_id, component, action, sum(action_count) AS byte_count, joules(sum(energy_fj)) AS energy_j
    FROM cube.cause(run_ids := [$run_a, $run_b])
    WHERE part = 'memory' AND per = 'B'
    GROUP BY run_id, component, action
)
SELECT
    coalesce(a.component, b.component) AS component,
    coalesce(a.action, b.action) AS action,
    a.byte_count AS bytes_a,
    b.byte_count AS bytes_b,
    coalesce(b.byte_count, 0e0) - coalesce(a.byte_count, 0e0) AS difference_bytes,
    coalesce(a.energy_j, 0e0) AS energy_a_j,
    coalesce(b.energy_j, 0e0) AS energy_b_j,
    coalesce(a.component, b.component) = 'dram' AS is_off_chip
FROM (SELECT component, action, byte_count, energy_j FROM side WHERE run_id = $run_a) AS a
FULL JOIN (SELECT component, action, byte_count, energy_j FROM side WHERE run_id = $run_b) AS b
    ON b.component = a.component AND b.action = a.action
ORDER BY abs(difference_bytes) DESC, component, action
