/*
record = "EnergyEvidence"
summary = "Measured energies and powers by class, hardware and boundary, and the errors of their predictions"
grain = "one row per class, hardware, boundary, subject and quantity with a measurement, and one per class without any"
order = ["classes by their number of measured energies, largest first", "hardware", "boundary", "subject", "quantity"]
[parameters]
classes = { type = "VARCHAR[]", default = [], meaning = "classes that have a row even without measurements" }
source = { type = "VARCHAR", default = "", meaning = "text that source names must contain, ignoring case; empty for all" }
[columns]
hardware = { type = "VARCHAR", null = true, meaning = "catalogue id, with @MODE where the power mode is not the default; null for a class without measurements" }
boundary = { type = "VARCHAR", null = true, meaning = "boundary of the measurements: chip, board or system" }
subject = { type = "VARCHAR", null = true, meaning = "models, operators or served" }
quantity = { type = "VARCHAR", null = true, meaning = "energy, or power of measurements without a time" }
measurement_count = { heading = "measurements", type = "BIGINT", meaning = "measurements with a prediction" }
held_out_count = { heading = "held out", type = "BIGINT", meaning = "number of these measurements to which no coefficient or calibration was fitted" }
net_count = { heading = "minus idle", type = "BIGINT", meaning = "number of these measurements from which idle power was subtracted" }
sources = { type = "VARCHAR[]", null = true, meaning = "names of the sources, sorted" }
mean_error_fraction = { heading = "mean error", type = "DOUBLE", null = true, meaning = "mean absolute relative error" }
median_error_fraction = { heading = "median error", type = "DOUBLE", null = true, meaning = "median absolute relative error" }
bias_fraction = { heading = "bias", type = "DOUBLE", null = true, meaning = "mean signed relative error; positive is predicted too high" }
covered_fraction = { heading = "inside 80 % interval", type = "DOUBLE", null = true, meaning = "share of the measurements inside the 80 % interval; null where predictions have none" }
class_energy_count = { type = "BIGINT", meaning = "measured energies of the whole class, of any hardware" }
*/
WITH known AS (
    SELECT
        e.architecture, e.hardware, e.boundary, e.subject, e.quantity,
        count(*) AS measurement_count,
        count(*) FILTER (WHERE coalesce(e.seen, '') = '') AS held_out_count,
        count(*) FILTER (WHERE e.idle_power_w IS NOT NULL) AS net_count,
        list_sort(list_distinct(list(regexp_replace(e.source, '(, |: | v[0-9.]+ ).*$', '')))) AS sources,
        avg(abs(e.error_fraction)) AS mean_error_fraction,
        median(abs(e.error_fraction)) AS median_error_fraction,
        avg(e.error_fraction) AS bias_fraction,
        avg(CAST(e.measured BETWEEN e.low AND e.high AS INTEGER)) AS covered_fraction
    FROM energy_errors AS e
    WHERE ($hardware = '' OR e.hardware = $hardware) AND contains(lower(e.source), lower($source))
    GROUP BY e.architecture, e.hardware, e.boundary, e.subject, e.quantity
),
class AS (SELECT unnest(CAST($classes AS VARCHAR[])) AS architecture)
SELECT
    coalesce(k.architecture, c.architecture) AS architecture,
    k.hardware, k.boundary, k.subject, k.quantity,
    coalesce(k.measurement_count, 0) AS measurement_count,
    coalesce(k.held_out_count, 0) AS held_out_count,
    coalesce(k.net_count, 0) AS net_count,
    k.sources, k.mean_error_fraction, k.median_error_fraction, k.bias_fraction, k.covered_fraction,
    CAST(coalesce(sum(CASE WHEN k.quantity = 'energy' THEN k.measurement_count END) OVER (
        PARTITION BY coalesce(k.architecture, c.architecture)
    ), 0) AS BIGINT) AS class_energy_count
FROM known AS k
FULL JOIN class AS c ON c.architecture = k.architecture
ORDER BY class_energy_count DESC, architecture, k.hardware, k.boundary, k.subject, k.quantity
