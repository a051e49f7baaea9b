/*
record = "StoredCalibration"
summary = "Calibrations that runs have used, what they were fitted to, and how far they are from that"
grain = "one row per calibration"
[parameters]
hardware = { type = "VARCHAR", default = "", meaning = "only of this hardware, an id; empty for all" }
run_ids = { type = "INTEGER[]", default = [], meaning = "only those that these runs used; none for all" }
[columns]
calibration = { type = "VARCHAR", meaning = "name and first digits of the digest" }
hardware = { type = "VARCHAR", meaning = "id of the hardware that it is for" }
place = { type = "VARCHAR", meaning = "shipped, the file, or given by a program" }
hardware_generation = { type = "VARCHAR", meaning = "class, microarchitecture and process node of hardware that may inherit it" }
inheritors = { type = "VARCHAR[]", meaning = "hardware of these runs that inherit it, in alphabetical order" }
measurement_count = { type = "INTEGER", meaning = "measurements that it was fitted to" }
family_count = { type = "INTEGER", meaning = "families of the models measured" }
latency_credibility_fraction = { type = "DOUBLE", meaning = "how far coefficients went from the class to what fits best" }
energy_credibility_fraction = { type = "DOUBLE", meaning = "the same of energy scales and static power" }
moved_count = { type = "INTEGER", meaning = "numbers that it moved" }
determined_count = { type = "INTEGER", meaning = "of them, those that the measurements determine" }
most_moved = { type = "VARCHAR", null = true, meaning = "the number that it moved most; null where it moved none" }
most_moved_ratio = { type = "DOUBLE", null = true, meaning = "after over before of that one" }
precisions = { type = "VARCHAR[]", meaning = "of the measurements" }
runtimes = { type = "VARCHAR[]", meaning = "of the measurements" }
latency_error_fraction = { type = "DOUBLE", null = true, meaning = "median absolute relative error of latencies: of families left out, or as fitted where there is one alone" }
energy_error_fraction = { type = "DOUBLE", null = true, meaning = "the same of energies; null where none was measured" }
*/
SELECT
    c.calibration, c.hardware, c.place, c.hardware_generation,
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
