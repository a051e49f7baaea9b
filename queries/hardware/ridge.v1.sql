/*
record = "RidgePoint"
summary = "Roofline of one chip: peak and ridge point per precision"
grain = "one row per precision"
table = [
    "precision", "peak_ops_per_s.kept", "ridge_ops_per_byte.kept", "basis.kept", "units_count",
    "operations_per_clock", "clock_hz", "peak_ops_per_j", "explanation",
]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
precision_index = { type = "INTEGER", meaning = "order in the description" }
precision = { type = "VARCHAR", meaning = "fp32, bf16, int8 ..." }
peak_ops_per_s = { heading = "peak", type = "DOUBLE", unit = "ops/s", meaning = "dense peak; one MAC is two operations" }
units_count = { heading = "units", type = "INTEGER", meaning = "units that support this precision" }
operations_per_clock = { type = "DOUBLE", meaning = "operations per clock of one unit" }
clock_hz = { heading = "clock", type = "DOUBLE", unit = "Hz", meaning = "clock at which the peak is stated" }
ridge_ops_per_byte = { heading = "ridge (ops/B)", type = "DOUBLE", meaning = "arithmetic intensity above which the peak, not the memory, limits throughput" }
peak_ops_per_j = { heading = "efficiency", type = "DOUBLE", unit = "ops/J", meaning = "peak over thermal design power" }
basis = { type = "VARCHAR", meaning = "basis of the peak" }
explanation = { type = "VARCHAR", meaning = "reason why units x operations x clock is not the peak, where it is not" }
*/
SELECT
    p.precision_index, p.precision, p.peak_ops_per_s, p.units_count, p.operations_per_clock, p.clock_hz,
    p.peak_ops_per_s / h.memory_bandwidth_bytes_per_s AS ridge_ops_per_byte,
    p.peak_ops_per_s / h.tdp_w AS peak_ops_per_j,
    f.basis,
    p.explanation
FROM hardware AS h
JOIN internal.hardware_precision AS p ON p.hardware_digest = h.hardware_digest
JOIN internal.hardware_fact AS f ON f.hardware_digest = h.hardware_digest AND f.quantity = 'peak.' || p.precision
WHERE h.hardware = $hardware
ORDER BY p.precision_index
