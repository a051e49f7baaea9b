/*
record = "HardwareCompiler"
summary = "Operators that the compiler of one chip supports"
grain = "one row, or none for hardware that runs every operator"
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
compiler = { type = "VARCHAR", meaning = "name of the compiler" }
cut = { type = "VARCHAR", meaning = "part of a partly supported model that the compiler keeps: first (all up to the first unsupported operator), stretch (one stretch of operators) or each (every supported operator)" }
operators = { type = "VARCHAR[]", meaning = "supported operators: kinds, operations, or operations of one kind as conv.conv2d" }
host = { type = "VARCHAR", meaning = "hardware that computes the unsupported operators by default; empty for none" }
basis = { type = "VARCHAR", meaning = "basis of the list of operators" }
source = { type = "VARCHAR", meaning = "source of the list of operators" }
*/
SELECT
    o.compiler,
    any_value(o.cut) AS cut,
    list(o.operator ORDER BY o.operator_index) AS operators,
    any_value(o.host) AS host,
    any_value(o.basis) AS basis,
    any_value(o.source) AS source
FROM hardware AS h
JOIN internal.hardware_operator AS o ON o.hardware_digest = h.hardware_digest
WHERE h.hardware = $hardware
GROUP BY o.compiler
ORDER BY o.compiler
