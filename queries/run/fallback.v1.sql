/*
record = "Fallback"
summary = "Operations of runs that a host computes because the chip's compiler does not support them or its cut excludes them"
grain = "one row per run and operation that the host computes"
order = ["position of the run in run_ids", "first_operator_index"]
[columns]
run_id = { type = "INTEGER", meaning = "run" }
configured_hardware = { type = "VARCHAR", meaning = "chip, with its power mode" }
compiler = { type = "VARCHAR", meaning = "compiler of the chip" }
cut = { type = "VARCHAR", meaning = "part of a partly supported model that the compiler keeps: first, stretch or each, as in hardware.compiler" }
helper = { type = "VARCHAR", meaning = "hardware that computes the operation, with its power mode" }
operation = { type = "VARCHAR", meaning = "conv2d, gelu ..." }
is_compiled = { type = "BOOLEAN", meaning = "true if the compiler supports the operation, but its cut leaves it to the host here" }
operator_count = { type = "BIGINT", meaning = "operators of this operation that the host computes" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency of these operators" }
latency_fraction = { type = "DOUBLE", meaning = "share of the run's latency, 0 to 1" }
energy_fraction = { type = "DOUBLE", meaning = "share of the run's energy, static energy during these operators included" }
first_operator_index = { type = "INTEGER", meaning = "index of the first of these operators in the model" }
limits = { type = "VARCHAR[]", meaning = "entries of the compiler's list that limit sizes of the operation, such as conv.conv2d stride=1-7" }
arguments = { type = "VARCHAR[]", meaning = "distinct arguments of these operators, such as kernel=[3, 3] stride=[2, 2]" }
ranks = { type = "BIGINT[]", meaning = "distinct numbers of dimensions of these operators' outputs" }
*/
WITH divided AS (
    SELECT DISTINCT s.run_id
    FROM internal.run_action AS s
    JOIN internal.action AS a ON a.action_id = s.action_id
    WHERE list_contains($run_ids, s.run_id) AND a.category = 'host' AND a.part <> 'static'
),
fallen AS (
    SELECT l.run_id, l.operator_index, sum(l.energy_fj) AS energy_fj
    FROM internal.ledger_line AS l
    SEMI JOIN divided AS d ON d.run_id = l.run_id
    JOIN internal.action AS a ON a.action_id = l.action_id
    GROUP BY l.run_id, l.operator_index
    HAVING count(*) FILTER (WHERE a.category = 'host' AND a.part <> 'static') > 0
)
SELECT
    r.run_id,
    any_value(r.configured_hardware) AS configured_hardware,
    any_value(k.compiler) AS compiler,
    any_value(k.cut) AS cut,
    any_value(h.hardware || CASE WHEN h.power_mode = 'default' THEN '' ELSE '@' || h.power_mode END) AS helper,
    q.operation,
    list_has_any(any_value(k.names), [q.operation, any_value(q.kind), any_value(q.kind) || '.' || q.operation])
        AS is_compiled,
    count(*) AS operator_count,
    seconds(sum(o.latency_fs)) AS latency_s,
    CAST(sum(o.latency_fs) AS DOUBLE) / any_value(x.latency_fs) AS latency_fraction,
    CAST(sum(f.energy_fj) AS DOUBLE) / any_value(x.energy_fj) AS energy_fraction,
    min(q.operator_index) AS first_operator_index,
    list_filter(
        any_value(k.limits),
        lambda x: list_contains(
            ['any', q.operation, any_value(q.kind), any_value(q.kind) || '.' || q.operation], split_part(x, ' ', 1)
        )
    ) AS limits,
    list(DISTINCT q.scalars ORDER BY q.scalars) AS arguments,
    list(DISTINCT CAST(if(q.output_shape = '', 0, len(string_split(q.output_shape, 'x'))) AS BIGINT)) AS ranks
FROM fallen AS f
JOIN run_configurations AS r ON r.run_id = f.run_id
JOIN internal.run_operator AS o ON o.run_id = f.run_id AND o.operator_index = f.operator_index
JOIN internal.run_total AS x ON x.run_id = f.run_id
JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = f.operator_index
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN internal.hardware_version AS h ON h.hardware_digest = v.helper_digest
JOIN (
    SELECT
        hardware_digest,
        any_value(compiler) AS compiler,
        any_value(cut) AS cut,
        list(split_part(operator, ' ', 1)) AS names,
        list(operator ORDER BY operator_index) FILTER (WHERE contains(operator, ' ')) AS limits
    FROM internal.hardware_operator
    GROUP BY hardware_digest
) AS k ON k.hardware_digest = r.hardware_digest
GROUP BY r.run_id, q.operation
ORDER BY list_position($run_ids, r.run_id), first_operator_index
