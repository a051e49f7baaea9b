/*
record = "DoubtedDevice"
summary = "Prediction errors of a model on the devices of a box, from measurements of the same or of similar devices"
grain = "one row per device"
[parameters]
work = { type = "VARCHAR", meaning = "kind of work: model, decode, experts, training or decomposition" }
hardware = { type = "VARCHAR[]", meaning = "catalogue ids, one per device" }
architectures = { type = "VARCHAR[]", meaning = "classes of the devices" }
precisions = { type = "VARCHAR[]", meaning = "precisions of the devices" }
calibrations = { type = "VARCHAR[]", meaning = "digests of their calibrations; empty for none" }
runtime = { type = "VARCHAR", meaning = "runtime of all devices" }
[columns]
position = { type = "BIGINT", meaning = "position of the device in the parameters, from 1" }
latency_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of a latency's logarithm" }
left_out_energy_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of an energy's logarithm, from the held-out families of the device's calibration; null without a calibration" }
power_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of a power's logarithm" }
power_group_count = { type = "BIGINT", null = true, meaning = "number of pairs of model family and board behind power_half_width; null if they are of other classes" }
*/
WITH device AS (
    SELECT
        unnest(range(1, len($hardware) + 1)) AS position,
        unnest($hardware) AS hardware,
        unnest($architectures) AS architecture,
        unnest($precisions) AS "precision",
        unnest($calibrations) AS calibration_digest
),
peak AS (
    SELECT v.hardware, max(p.peak_ops_per_s) AS ops_per_s
    FROM internal.hardware_precision AS p
    JOIN internal.hardware_version AS v ON v.hardware_digest = p.hardware_digest
    GROUP BY v.hardware
),
subject AS (
    SELECT
        d.position AS row_id,
        $work AS work,
        d.architecture,
        $runtime AS runtime,
        d.precision,
        d.hardware,
        z.ops_per_s,
        d.calibration_digest
    FROM device AS d
    LEFT JOIN peak AS z ON z.hardware = d.hardware
),
scale AS (FROM numpy.scales_of(subject))
SELECT
    t.row_id AS position,
    coalesce(t.held_out_half_width, t.half_width) AS latency_half_width,
    e.held_out_half_width AS left_out_energy_half_width,
    e.half_width AS power_half_width,
    CASE WHEN e.level >= 2 THEN CAST(e.group_count AS BIGINT) END AS power_group_count
FROM scale AS t
JOIN scale AS e ON e.row_id = t.row_id
WHERE t.quantity = 'latency' AND e.quantity = 'power'
ORDER BY position
