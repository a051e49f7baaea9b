/*
record = "FittedNumber"
summary = "Coefficients and energy scales that a calibration changed, before and after"
grain = "one row per coefficient"
table = ["part", "name.kept", "default_value", "value.kept", "ratio.kept", "data_weight_fraction", "meaning"]
[columns]
part = { type = "VARCHAR", meaning = "kind of number: time, a coefficient; energy, a factor on energies per action; static, static power" }
name = { type = "VARCHAR", meaning = "coefficient or energy scale" }
default_value = { heading = "class default", type = "DOUBLE", meaning = "value without the calibration, in unit" }
value = { heading = "fitted", type = "DOUBLE", meaning = "value with the calibration, in unit" }
unit = { type = "VARCHAR", meaning = "SI unit; 1 for a factor or share" }
ratio = { type = "DOUBLE", meaning = "value with the calibration over value without" }
data_weight_fraction = { heading = "weight of the data", type = "DOUBLE", meaning = "weight of the measurements in the value, relative to prior knowledge" }
is_determined = { type = "BOOLEAN", meaning = "true if the weight suffices for the number to count as measured" }
meaning = { type = "VARCHAR", meaning = "meaning of the number" }
coefficient_index = { type = "INTEGER", meaning = "order in the file" }
*/
SELECT k.part, k.name, k.default_value, k.value, k.unit, k.ratio, k.data_weight_fraction, k.is_determined,
    k.meaning, k.coefficient_index
FROM calibration_coefficients AS k
WHERE k.calibration = $calibration
ORDER BY k.coefficient_index
