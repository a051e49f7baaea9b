/*
record = "ModulePart"
summary = "Modules of one run, each with everything that runs inside it"
grain = "one row per module in which an operator runs, the model itself first; own energies, latencies and MACs sum to the run, exactly"
table = [
    "module", 'output_shape.headed("output").if_any.kept', 'weight_count.headed("weights")', "mac_count.kept",
    "latency_s.kept", "energy_j.kept", "energy_fraction.kept",
]
[columns]
module_index = { type = "BIGINT", meaning = "order: each module before those inside it, by their first operators" }
module = { type = "VARCHAR", meaning = "path of the module, of its first use if several modules share it; empty for the model itself" }
depth = { type = "BIGINT", meaning = "number of enclosing modules" }
output_shape = { type = "VARCHAR", meaning = "output shape of the last operator that runs inside it, e.g. 1x64x56x56" }
operator_count = { type = "BIGINT", meaning = "operators that run inside it" }
weight_count = { type = "BIGINT", meaning = "elements of the parameters and buffers that these operators read, each counted once" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency of its operators; a fused operator has its share of the kernel's latency" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy of its operators, static energy included" }
latency_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's latency" }
energy_fraction = { type = "DOUBLE", null = true, meaning = "share of the run's energy" }
mac_count = { heading = "MACs" }
own_mac_count = { type = "BIGINT", meaning = "multiply-accumulates of the operators that the module calls itself" }
own_latency_fs = { type = "HUGEINT", unit = "fs", meaning = "latency of the operators that the module calls itself, exact" }
own_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy of the operators that the module calls itself, exact" }
*/
WITH step AS MATERIALIZED (
    SELECT
        workload_id,
        operator_index,
        CASE WHEN module_path = '' THEN CAST([] AS VARCHAR[]) ELSE string_split(module_path, '.') END AS parts,
        output_shape,
        mac_count,
        latency_fs,
        energy_fj,
        run_fs,
        run_fj
    FROM cube.part(run_ids := [$run_id], division := 'operator', energy := 'whole')
),
inside AS MATERIALIZED (
    SELECT
        array_to_string(list_slice(s.parts, 1, d.depth), '.') AS module,
        d.depth,
        d.depth = len(s.parts) AS is_own,
        s.operator_index,
        s.output_shape,
        s.mac_count,
        s.latency_fs,
        s.energy_fj,
        s.run_fs,
        s.run_fj
    FROM step AS s, LATERAL (SELECT unnest(range(len(s.parts) + 1)) AS depth) AS d
),
summed AS (
    SELECT
        module,
        any_value(depth) AS depth,
        min(operator_index) AS first_index,
        arg_max(output_shape, operator_index) AS output_shape,
        count(*) AS operator_count,
        CAST(sum(mac_count) AS BIGINT) AS mac_count,
        sum(latency_fs) AS latency_fs,
        sum(energy_fj) AS energy_fj,
        any_value(run_fs) AS run_fs,
        any_value(run_fj) AS run_fj,
        CAST(coalesce(sum(mac_count) FILTER (is_own), 0) AS BIGINT) AS own_mac_count,
        CAST(coalesce(sum(latency_fs) FILTER (is_own), 0) AS HUGEINT) AS own_latency_fs,
        CAST(coalesce(sum(energy_fj) FILTER (is_own), 0) AS HUGEINT) AS own_energy_fj
    FROM inside
    GROUP BY module
),
weight AS (
    SELECT module, CAST(sum(element_count) AS BIGINT) AS weight_count
    FROM (
        SELECT DISTINCT
            i.module,
            t.tensor_index,
            -- TRY_CAST: the engine also splits the empty shapes of scalars, which have one element each
            list_product(
                list_transform(string_split(t.shape, 'x'), lambda size: coalesce(TRY_CAST(size AS BIGINT), 1))
            ) AS element_count
        FROM inside AS i
        JOIN internal.workload_access AS a
            ON a.workload_id = (SELECT any_value(workload_id) FROM step) AND a.operator_index = i.operator_index
        JOIN internal.workload_tensor AS t ON t.workload_id = a.workload_id AND t.tensor_index = a.tensor_index
        WHERE a.role = 'weight'
    )
    GROUP BY module
),
path AS (
    SELECT s.module, list(a.first_index ORDER BY a.depth) AS path
    FROM summed AS s
    JOIN summed AS a ON a.module = s.module OR a.depth = 0 OR starts_with(s.module, a.module || '.')
    GROUP BY s.module
)
SELECT
    row_number() OVER (ORDER BY p.path, s.module) - 1 AS module_index,
    s.module, s.depth, s.output_shape, s.operator_count,
    coalesce(w.weight_count, 0) AS weight_count,
    s.mac_count,
    seconds(s.latency_fs) AS latency_s,
    joules(s.energy_fj) AS energy_j,
    fraction(s.latency_fs, s.run_fs) AS latency_fraction,
    fraction(s.energy_fj, s.run_fj) AS energy_fraction,
    s.own_mac_count, s.own_latency_fs, s.own_energy_fj
FROM summed AS s
JOIN path AS p ON p.module = s.module
LEFT JOIN weight AS w ON w.module = s.module
ORDER BY module_index
