/*
record = "HardwareCompiler"
summary = "What the compiler of one hardware runs on it"
grain = "one row, or none for hardware that runs every operator"
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
compiler = { type = "VARCHAR", meaning = "its name" }
cut = { type = "VARCHAR", meaning = "what it keeps of a model that it does not run whole: first (all up to the first operator that it does not run), stretch (one stretch of operators) or each (every operator that it runs)" }
operators = { type = "VARCHAR[]", meaning = "kinds, operations, or operations of one kind as conv.conv2d" }
host = { type = "VARCHAR", meaning = "hardware that computes the rest where none is named; empty for none" }
basis = { type = "VARCHAR", meaning = "how sure the list is" }
source = { type = "VARCHAR", meaning = "who says so" }
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
