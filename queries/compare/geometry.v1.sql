/*
record = "HardwareNumber"
summary = "Hardware of several runs: geometry, memory, power and its modes, peaks"
grain = "one row per run and number of its hardware"
order = ["position in run_ids", "run_id", "section, in the order geometry, memory, power, peak", "fact_index"]
[columns]
section = { type = "VARCHAR", meaning = "geometry, memory, power or peak" }
quantity = { type = "VARCHAR", meaning = "name of the number, as in hardware_facts" }
unit = { type = "VARCHAR", meaning = "SI unit; 1 for a count or ratio" }
value = { type = "DOUBLE", meaning = "value in unit" }
*/
WITH number AS (
    SELECT
        r.run_id,
        r.configured_hardware AS hardware,
        f.quantity,
        f.value,
        f.unit,
        f.basis,
        v.unit_name,
        v.memory_type,
        f.fact_index,
        CASE
            WHEN f.quantity IN ('unit_count', 'clock', 'process_node') OR f.quantity LIKE 'geometry.%' THEN 1
            WHEN f.quantity IN ('memory_capacity', 'memory_bandwidth') OR f.quantity LIKE 'memory.%' THEN 2
            WHEN f.quantity IN ('tdp', 'idle_power', 'static_power') OR f.quantity LIKE 'power_mode.%.tdp' THEN 3
            WHEN f.quantity = 'peak.' || r.precision THEN 4
        END AS position
    FROM run_configurations AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    JOIN internal.hardware_fact AS f ON f.hardware_digest = r.hardware_digest
    WHERE r.run_id IN (SELECT unnest($run_ids))
)
SELECT
    hardware,
    CASE position WHEN 1 THEN 'geometry' WHEN 2 THEN 'memory' WHEN 3 THEN 'power' ELSE 'peak' END AS section,
    quantity,
    value,
    unit,
    basis,
    unit_name,
    memory_type,
    fact_index,
    run_id
FROM number
WHERE position IS NOT NULL
ORDER BY list_position($run_ids, run_id), run_id, position, fact_index
