/*
record = "RoleDifference"
summary = "Energy of two runs by role of the actions, which groups equivalent actions of different classes, with the parts of the difference due to count and energy per unit"
grain = "one row per role of either run; differences sum to B minus A, exactly"
order = ["absolute difference_fj descending", "role"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
[columns]
role = { type = "VARCHAR", meaning = "role: mac, operand, memory_read, instruction ...; component.action of an action without a known role" }
category = { type = "VARCHAR", meaning = "category of the role: compute, register, on_chip_memory, interconnect, off_chip_memory, communication, control, board, unattributed, host or static" }
way_a = { type = "VARCHAR", meaning = "how the class of A serves this role, if unlike most classes; empty otherwise" }
way_b = { type = "VARCHAR", meaning = "how the class of B serves this role, if unlike most classes; empty otherwise" }
actions_a = { heading = "actions A", type = "VARCHAR", meaning = "actions of A in this role, most energy first; empty without one" }
actions_b = { heading = "actions B", type = "VARCHAR", meaning = "actions of B in this role" }
step_a = { type = "VARCHAR", meaning = "name of one count of A's control, such as instruction or token; empty for other roles" }
step_b = { type = "VARCHAR", meaning = "name of one count of B's control" }
count_a = { heading = "count A", type = "DOUBLE", meaning = "amount on A, in the role's unit, such as operations that operands serve, or bytes of on-chip memory that cross the chip" }
count_b = { heading = "count B", type = "DOUBLE", meaning = "amount on B" }
price_a_j = { heading = "energy each of A", type = "DOUBLE", null = true, unit = "J", meaning = "energy of one unit of count_a, all actions of the role together; null without a count" }
price_b_j = { heading = "energy each of B", type = "DOUBLE", null = true, unit = "J", meaning = "energy of one unit of count_b; null without a count" }
is_shared = { type = "BOOLEAN", meaning = "true if both have actions of the role" }
by_count_fj = { heading = "difference from count", type = "HUGEINT", unit = "fJ", meaning = "part of the difference due to the count, at the mean of both energies per unit; 0 where one run lacks the role; for static power, the part due to the time" }
by_price_fj = { heading = "difference from energy each", type = "HUGEINT", unit = "fJ", meaning = "rest of the difference, due to the energy per unit; 0 where one run lacks the role; for static power, the part due to the power" }
difference_fraction = { heading = "share of energy differences", type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
energy_a_j = { heading = "A" }
energy_b_j = { heading = "B" }
difference_j = { shown = "+" }
*/
WITH act AS (
    SELECT
        c.run_id,
        join_memories(c.common_category) AS category,
        CASE
            WHEN c.full_action = 'host.static_power' THEN 'host_static'
            WHEN c.common_category = 'host' THEN 'host'
            ELSE coalesce(r.role, c.full_action)
        END AS role,
        coalesce(r.way, '') AS way,
        coalesce(r.step, '') AS step,
        c.full_action,
        CASE WHEN c.common_category = 'host' THEN 0e0 ELSE c.action_count * coalesce(r.amount, 1e0) END AS amount,
        c.energy_fj
    FROM cube.cause(run_ids := [$run_a, $run_b], within := $subgraph) AS c
    LEFT JOIN internal.action_role AS r
        ON r.architecture = c.architecture AND r.component = c.component AND r.action = c.action
),
summed AS (
    SELECT
        run_id,
        category,
        role,
        max(way) AS way,
        max(step) AS step,
        string_agg(full_action, ', ' ORDER BY energy_fj DESC, full_action) AS actions,
        sum(amount ORDER BY full_action) AS amount,
        sum(energy_fj) AS energy_fj
    FROM act
    GROUP BY run_id, category, role
),
served AS (
    SELECT
        run_id,
        sum(amount ORDER BY role) FILTER (WHERE role IN ('mac', 'elementwise', 'special_function')) AS operation_count,
        sum(amount ORDER BY role) FILTER (WHERE role IN ('memory_read', 'memory_write')) AS moved_bytes
    FROM summed
    GROUP BY run_id
),
side AS (
    SELECT
        s.run_id,
        s.category,
        s.role,
        s.way,
        s.step,
        s.actions,
        CASE s.role
            WHEN 'operand' THEN coalesce(w.operation_count, 0e0)
            WHEN 'transport' THEN coalesce(w.moved_bytes, 0e0)
            ELSE s.amount
        END AS amount,
        s.energy_fj
    FROM summed AS s
    JOIN served AS w ON w.run_id = s.run_id
),
met AS (
    SELECT
        role,
        category,
        coalesce(max(way) FILTER (WHERE run_id = $run_a), '') AS way_a,
        coalesce(max(way) FILTER (WHERE run_id = $run_b), '') AS way_b,
        coalesce(max(step) FILTER (WHERE run_id = $run_a), '') AS step_a,
        coalesce(max(step) FILTER (WHERE run_id = $run_b), '') AS step_b,
        coalesce(max(actions) FILTER (WHERE run_id = $run_a), '') AS actions_a,
        coalesce(max(actions) FILTER (WHERE run_id = $run_b), '') AS actions_b,
        coalesce(sum(amount) FILTER (WHERE run_id = $run_a), 0e0) AS count_a,
        coalesce(sum(amount) FILTER (WHERE run_id = $run_b), 0e0) AS count_b,
        coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_a), 0) AS energy_a_fj,
        coalesce(sum(energy_fj) FILTER (WHERE run_id = $run_b), 0) AS energy_b_fj,
        bool_or(run_id = $run_a) AND bool_or(run_id = $run_b) AS is_shared,
        by_count(count_a, count_b, energy_a_fj, energy_b_fj) AS by_count_fj
    FROM side
    GROUP BY role, category
)
SELECT
    role, category, way_a, way_b, step_a, step_b, actions_a, actions_b, count_a, count_b,
    joules(energy_a_fj) / nullif(count_a, 0e0) AS price_a_j,
    joules(energy_b_fj) / nullif(count_b, 0e0) AS price_b_j,
    energy_a_fj, energy_b_fj,
    energy_b_fj - energy_a_fj AS difference_fj,
    is_shared, by_count_fj,
    CASE WHEN is_shared THEN energy_b_fj - energy_a_fj - by_count_fj ELSE 0 END AS by_price_fj,
    joules(energy_a_fj) AS energy_a_j,
    joules(energy_b_fj) AS energy_b_j,
    joules(energy_b_fj - energy_a_fj) AS difference_j,
    fraction(energy_b_fj - energy_a_fj, sum(energy_b_fj - energy_a_fj) OVER ()) AS difference_fraction
FROM met
ORDER BY abs(energy_b_fj - energy_a_fj) DESC, role
