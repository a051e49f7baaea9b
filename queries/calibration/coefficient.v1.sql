/*
record = "FittedNumber"
summary = "What a calibration changed: each coefficient and energy scale before and after"
grain = "one row per coefficient"
[columns]
part = { type = "VARCHAR", meaning = "time: a coefficient; energy: a factor on energies per action; static: static power" }
name = { type = "VARCHAR", meaning = "coefficient or energy scale" }
default_value = { type = "DOUBLE", meaning = "without the calibration, in unit" }
value = { type = "DOUBLE", meaning = "with it, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit; 1 for a factor or share" }
ratio = { type = "DOUBLE", meaning = "with it over without it" }
data_weight_fraction = { type = "DOUBLE", meaning = "part of what is known of it that the measurements said" }
is_determined = { type = "BOOLEAN", meaning = "whether that is enough for it to count as measured" }
meaning = { type = "VARCHAR", meaning = "what it is" }
coefficient_index = { type = "INTEGER", meaning = "order in the file" }
*/
SELECT k.part, k.name, k.default_value, k.value, k.unit, k.ratio, k.data_weight_fraction, k.is_determined,
    k.meaning, k.coefficient_index
FROM calibration_coefficients AS k
WHERE k.calibration = $calibration
ORDER BY k.coefficient_index
