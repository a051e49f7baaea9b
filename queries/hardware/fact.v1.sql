/*
name = "hardware.fact"
record = "HardwareFact"
version = 1
schema = 1
summary = "Every number of one hardware with unit, basis and source"
grain = "one row per number"
order = ["fact_index"]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
fact_index = { type = "INTEGER", meaning = "order in the description" }
quantity = { type = "VARCHAR", meaning = "dotted name" }
value = { type = "DOUBLE", meaning = "in unit" }
unit = { type = "VARCHAR", meaning = "SI unit; 1 for a count or ratio" }
basis = { type = "VARCHAR", meaning = "measured, published, derived, scaled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic" }
note = { type = "VARCHAR", meaning = "what a reader must know" }
*/
SELECT fact_index, quantity, value, unit, basis, source, note
FROM hardware_facts
WHERE hardware = $hardware AND is_current
ORDER BY fact_index
