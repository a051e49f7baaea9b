/*
record = "HardwareFact"
summary = "Numbers of one chip with unit, basis and source"
grain = "one row per number"
table = ["quantity", "value.kept", "basis.kept", "source", "note"]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
fact_index = { type = "INTEGER", meaning = "order in the hardware's description" }
quantity = { type = "VARCHAR", meaning = "dotted name of the number" }
unit = { type = "VARCHAR", meaning = "SI unit; 1 for a count or ratio" }
value = { type = "DOUBLE", meaning = "value in unit" }
*/
SELECT fact_index, quantity, value, unit, basis, source, note
FROM hardware_facts
WHERE hardware = $hardware AND is_current
ORDER BY fact_index
