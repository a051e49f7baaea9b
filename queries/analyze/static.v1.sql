/*
record = "StaticShare"
summary = "Static power of a run by part"
grain = "one row per part; the parts sum to the static power"
table = ["part.kept", "power_w.kept", "low_w.kept", "high_w.kept", "energy_j.kept", "energy_fraction", "basis.kept"]
order = ["power_w descending", "part"]
[columns]
part = { type = "VARCHAR", meaning = "running clocks, memory, leakage, regulators or links and fans" }
power_w = { type = "DOUBLE", unit = "W", meaning = "power of the part" }
low_w = { type = "DOUBLE", unit = "W", meaning = "lower end of what it may be", heading = "from" }
high_w = { type = "DOUBLE", unit = "W", meaning = "upper end of what it may be", heading = "to" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy per batch" }
energy_fraction = { heading = "energy share" }
*/
SELECT
    p.part,
    p.power_w,
    p.low_w,
    p.high_w,
    p.static_fraction * v.energy_j AS energy_j,
    p.static_fraction * v.energy_fraction AS energy_fraction,
    p.basis,
    p.source
FROM cube.cause(run_ids := [$run_id]) AS v
JOIN runs AS r ON r.run_id = $run_id
JOIN static_parts AS p ON p.hardware_digest = r.hardware_digest
WHERE v.full_action = 'chip.static_power'
ORDER BY p.power_w DESC, p.part
