/*
record = "ListedHardware"
summary = "Hardware of the catalogue, filtered"
grain = "one row per chip"
[parameters]
architecture = { type = "VARCHAR", default = "", meaning = "class to restrict to; empty for all" }
deployment = { type = "VARCHAR", default = "", meaning = "deployment to restrict to: datacenter, edge or embedded; empty for all" }
precision = { type = "VARCHAR", default = "", meaning = "precision that the hardware must support; empty for all" }
min_memory_bytes = { type = "DOUBLE", default = 0.0, meaning = "minimum off-chip memory; 0 for any" }
max_power_w = { type = "DOUBLE", default = 0.0, meaning = "maximum thermal design power; 0 for any" }
max_price_usd = { type = "DOUBLE", default = 0.0, meaning = "maximum purchase price, which must be known; 0 for any" }
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
deployment = { type = "VARCHAR", meaning = "deployments: datacenter, edge or embedded" }
precisions = { type = "VARCHAR", meaning = "supported precisions" }
memory_capacity_bytes = { type = "DOUBLE", unit = "B", meaning = "capacity of the memory" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", unit = "B/s", meaning = "memory bandwidth" }
needs_host = { type = "VARCHAR", meaning = "slot or port of the host that the hardware needs; the host's power is not in tdp_w; empty for standalone hardware" }
power_modes = { type = "VARCHAR", meaning = "power modes besides the default" }
aliases = { type = "VARCHAR", meaning = "aliases, comma-separated" }
is_projection = { type = "BOOLEAN", meaning = "true if key numbers are projections or estimates" }
projection = { type = "VARCHAR", meaning = "reason why key numbers are projections or estimates; empty where they are published" }
unavailable = { type = "VARCHAR", meaning = "reason why it is unavailable; empty where it is available" }
recalled_fact_count = { heading = "recalled", type = "BIGINT", meaning = "number of recalled numbers: public, but not verified against their source" }
assumed_fact_count = { heading = "assumed", type = "BIGINT", meaning = "number of assumed numbers" }
package = { type = "VARCHAR", meaning = "installed package that describes it, with version; empty for any other hardware" }
fact_count = { heading = "numbers" }
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
    h.needs_host,
    coalesce(m.power_modes, '') AS power_modes,
    h.price_purchase_usd,
    h.price_cloud_usd_per_hour,
    f.fact_count,
    f.recalled_fact_count,
    f.assumed_fact_count,
    array_to_string(v.aliases, ', ') AS aliases,
    h.is_projection,
    h.projection,
    h.is_available,
    h.unavailable,
    h.package
FROM hardware AS h
JOIN internal.hardware_version AS v ON v.hardware_digest = h.hardware_digest
JOIN (
    SELECT
        hardware_digest,
        string_agg(precision, ' ' ORDER BY precision_index) AS precisions,
        list(precision) AS known
    FROM internal.hardware_precision
    GROUP BY hardware_digest
) AS p ON p.hardware_digest = h.hardware_digest
JOIN (
    SELECT
        hardware_digest,
        count(*) AS fact_count,
        count(*) FILTER (WHERE basis = 'recalled') AS recalled_fact_count,
        count(*) FILTER (WHERE basis = 'assumed') AS assumed_fact_count
    FROM internal.hardware_fact
    GROUP BY hardware_digest
) AS f ON f.hardware_digest = h.hardware_digest
LEFT JOIN (
    SELECT hardware_digest, string_agg(power_mode, ' ' ORDER BY mode_index) AS power_modes
    FROM internal.hardware_power_mode
    GROUP BY hardware_digest
) AS m ON m.hardware_digest = h.hardware_digest
WHERE ($architecture = '' OR h.architecture = $architecture)
    AND ($deployment = '' OR list_contains(h.deployment, $deployment))
    AND ($precision = '' OR list_contains(p.known, $precision))
    AND h.memory_capacity_bytes >= $min_memory_bytes
    AND ($max_power_w = 0 OR h.tdp_w <= $max_power_w)
    AND ($max_price_usd = 0 OR h.price_purchase_usd <= $max_price_usd)
ORDER BY h.architecture, h.hardware
