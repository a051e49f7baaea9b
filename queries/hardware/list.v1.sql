/*
name = "hardware.list"
version = 1
schema = 2
summary = "Hardware targets of the catalogue"
grain = "one row per hardware"
order = ["architecture", "hardware"]
[parameters]
architecture = { type = "VARCHAR", default = "", meaning = "only this class; empty for all" }
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
name = { type = "VARCHAR", meaning = "name for people" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
deployment = { type = "VARCHAR", meaning = "where it is used" }
units_total_count = { type = "INTEGER", meaning = "units on the chip" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
precisions = { type = "VARCHAR", meaning = "what it runs" }
memory_capacity_bytes = { type = "DOUBLE", unit = "B", meaning = "off-chip memory" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", unit = "B/s", meaning = "off-chip memory" }
tdp_w = { type = "DOUBLE", unit = "W", meaning = "thermal design power" }
is_projection = { type = "BOOLEAN", meaning = "key numbers are projections" }
*/
SELECT
    h.hardware,
    h.name,
    h.architecture,
    array_to_string(h.deployment, ' ') AS deployment,
    h.units_total_count,
    h.unit_name,
    p.precisions,
    h.memory_capacity_bytes,
    h.memory_bandwidth_bytes_per_s,
    h.tdp_w,
    h.is_projection
FROM hardware AS h
JOIN (
    SELECT hardware_digest, string_agg(precision, ' ' ORDER BY precision_index) AS precisions
    FROM hardware_precision
    GROUP BY hardware_digest
) AS p ON p.hardware_digest = h.hardware_digest
WHERE $architecture = '' OR h.architecture = $architecture
ORDER BY h.architecture, h.hardware
