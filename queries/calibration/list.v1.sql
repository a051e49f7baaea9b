/*
record = "StoredCalibration"
summary = "Calibrations that runs used, with their measurements and errors"
grain = "one row per calibration"
[parameters]
hardware = { type = "VARCHAR", default = "", meaning = "id of a chip to restrict to; empty for all" }
run_ids = { type = "INTEGER[]", default = [], meaning = "runs to restrict to; empty for all" }
[columns]
calibration = { type = "VARCHAR", meaning = "name and first digits of the digest" }
hardware = { type = "VARCHAR", meaning = "id of the calibrated hardware" }
origin = { type = "VARCHAR", meaning = "origin: shipped, the file, or given by a program" }
hardware_generation = { type = "VARCHAR", meaning = "class, microarchitecture and process node of hardware that may inherit it" }
inheritors = { type = "VARCHAR[]", meaning = "hardware of these runs that inherits it, in alphabetical order" }
measurement_count = { type = "INTEGER", meaning = "number of measurements fitted" }
family_count = { type = "INTEGER", meaning = "number of model families measured" }
latency_credibility_fraction = { type = "DOUBLE", meaning = "weight of the measurements in coefficients, against class defaults" }
energy_credibility_fraction = { type = "DOUBLE", meaning = "weight of the measurements in energy scales and static power, against class defaults" }
moved_count = { type = "INTEGER", meaning = "number of changed numbers" }
determined_count = { type = "INTEGER", meaning = "number of changed numbers that the measurements determine" }
most_moved = { type = "VARCHAR", null = true, meaning = "the number that changed most; null where no number changed" }
most_moved_ratio = { type = "DOUBLE", null = true, meaning = "value of most_moved with the calibration over its value without; null where no number changed" }
precisions = { type = "VARCHAR[]", meaning = "precisions of the measurements" }
runtimes = { type = "VARCHAR[]", meaning = "runtimes of the measurements" }
latency_error_fraction = { type = "DOUBLE", null = true, meaning = "median absolute relative latency error: with families held out, or as fitted for a single family" }
energy_error_fraction = { type = "DOUBLE", null = true, meaning = "median absolute relative energy error: with families held out, or as fitted for a single family; null where no energy was measured" }
*/
SELECT
    c.calibration, c.hardware, c.origin, c.hardware_generation,
    coalesce(h.inheritors, []) AS inheritors,
    c.measurement_count,
    CAST(len(c.families) AS INTEGER) AS family_count,
    c.latency_credibility_fraction, c.energy_credibility_fraction,
    coalesce(k.moved_count, 0) AS moved_count,
    coalesce(k.determined_count, 0) AS determined_count,
    k.most_moved,
    k.most_moved_ratio,
    c.precisions, c.runtimes, c.latency_error_fraction, c.energy_error_fraction
FROM calibrations AS c
LEFT JOIN (
    SELECT
        calibration_digest,
        CAST(count(*) AS INTEGER) AS moved_count,
        CAST(count(*) FILTER (WHERE is_determined) AS INTEGER) AS determined_count,
        arg_max(name, abs(ln(ratio))) AS most_moved,
        arg_max(ratio, abs(ln(ratio))) AS most_moved_ratio
    FROM calibration_coefficients
    GROUP BY calibration_digest
) AS k ON k.calibration_digest = c.calibration_digest
LEFT JOIN (
    SELECT r.calibration_digest, list_sort(list(DISTINCT v.hardware)) AS inheritors
    FROM internal.run AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    JOIN internal.calibration AS b ON b.calibration_digest = r.calibration_digest
    WHERE (len($run_ids) = 0 OR r.run_id IN (SELECT unnest($run_ids))) AND v.hardware <> b.hardware
    GROUP BY r.calibration_digest
) AS h ON h.calibration_digest = c.calibration_digest
WHERE ($hardware = '' OR c.hardware = $hardware)
    AND (
        len($run_ids) = 0
        OR c.calibration_digest IN (SELECT calibration_digest FROM internal.run WHERE run_id IN (SELECT unnest($run_ids)))
    )
ORDER BY c.hardware, c.calibration
