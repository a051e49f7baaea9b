/*
name = "analyze.roofline"
record = "SubgraphRoof"
version = 1
schema = 1
summary = "The subgraphs of a run under the roof of its hardware: operations per byte off chip, and operations per second"
grain = "one row per subgraph"
order = ["subgraph_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "in the order of first operators" }
name = { type = "VARCHAR", meaning = "operator that leads it" }
kind = { type = "VARCHAR", meaning = "operation of that operator: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency" }
bottleneck = { type = "VARCHAR", meaning = "the largest of compute, memory and launch time" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip" }
dram_intensity_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "operations computed over bytes moved off chip; null where there are no bytes" }
attained_ops_per_s = { type = "DOUBLE", unit = "ops/s", meaning = "operations computed, two per MAC, over its latency; 0 where it has no MAC" }
peak_ops_per_s = { type = "DOUBLE", unit = "ops/s", meaning = "dense peak of the hardware at the precision of the run" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", unit = "B/s", meaning = "of the off-chip memory, as published" }
ridge_ops_per_byte = { type = "DOUBLE", unit = "ops/B", meaning = "peak over off-chip bandwidth: the intensity from which the peak, not the memory, is the roof" }
roofline_ops_per_s = { type = "DOUBLE", unit = "ops/s", meaning = "its roof: the lesser of the peak and intensity x bandwidth" }
roofline_fraction = { type = "DOUBLE", null = true, meaning = "attained over its roof; null where it has no MAC" }
*/
WITH placed AS (
    SELECT
        s.subgraph_index,
        s.name,
        s.fusion_pattern,
        s.energy_j,
        s.latency_s,
        s.bottleneck,
        s.dram_bytes,
        2 * s.computed_mac_count / nullif(s.dram_bytes, 0e0) AS dram_intensity_ops_per_byte,
        coalesce(2 * s.computed_mac_count / nullif(s.latency_s, 0e0), 0e0) AS attained_ops_per_s,
        r.peak_ops_per_s,
        r.memory_bandwidth_bytes_per_s
    FROM subgraph_results AS s
    JOIN run_configurations AS r ON r.run_id = s.run_id
    WHERE s.run_id = $run_id AND r.run_id = $run_id
),
roofed AS (
    SELECT
        subgraph_index,
        CASE
            WHEN dram_intensity_ops_per_byte IS NULL THEN peak_ops_per_s
            ELSE least(peak_ops_per_s, dram_intensity_ops_per_byte * memory_bandwidth_bytes_per_s)
        END AS roofline_ops_per_s
    FROM placed
)
SELECT
    p.subgraph_index,
    p.name,
    split_part(p.fusion_pattern, '+', 1) AS kind,
    p.fusion_pattern,
    p.energy_j,
    p.latency_s,
    p.bottleneck,
    p.dram_bytes,
    p.dram_intensity_ops_per_byte,
    p.attained_ops_per_s,
    p.peak_ops_per_s,
    p.memory_bandwidth_bytes_per_s,
    p.peak_ops_per_s / p.memory_bandwidth_bytes_per_s AS ridge_ops_per_byte,
    t.roofline_ops_per_s,
    p.attained_ops_per_s / nullif(t.roofline_ops_per_s, 0e0) AS roofline_fraction
FROM placed AS p
JOIN roofed AS t ON t.subgraph_index = p.subgraph_index
ORDER BY p.subgraph_index
