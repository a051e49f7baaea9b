/*
record = "DoubtedDevice"
summary = "Prediction errors of a model on the devices of a box, from measurements of each device or its like"
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
left_out_energy_half_width = { type = "DOUBLE", null = true, meaning = "half-width of the energy interval of its calibration; null without one" }
energy_half_width = { type = "DOUBLE", meaning = "half-width of the energy interval of its finest group of measurements" }
energy_group_count = { type = "BIGINT", null = true, meaning = "number of measurements in that group; null for other classes" }
*/
WITH device AS (
    SELECT
        unnest(range(1, len($hardware) + 1)) AS position,
        unnest($hardware) AS hardware,
        unnest($architectures) AS architecture,
        unnest($precisions) AS "precision",
        unnest($calibrations) AS calibration_digest
),
scale AS (
    SELECT
        d.position,
        s.quantity,
        max_by(
            CASE s.quantity
                WHEN 'latency' THEN doubted_half_width(d.architecture, s.level, new_half_width(s.level, s.half_width, $work))
                ELSE new_half_width(s.level, s.half_width, $work)
            END,
            s.level
        ) AS half_width,
        CASE WHEN max(s.level) >= 2 THEN max_by(s.group_count, s.level) END AS group_count
    FROM device AS d
    LEFT JOIN (
        SELECT v.hardware, max(p.ops_per_s) AS ops_per_s
        FROM peaks_of_hardware() AS p
        JOIN internal.hardware_version AS v ON v.hardware_digest = p.hardware_digest
        GROUP BY v.hardware
    ) AS z ON z.hardware = d.hardware
    JOIN internal.error_scale AS s
        ON s.work IN ('', $work)
        AND s.architecture IN ('', d.architecture)
        AND s.runtime IN ('', scored_runtime(d.architecture, $runtime))
        AND s.precision IN ('', d.precision)
        AND s.hardware IN ('', d.hardware)
        AND is_of_size(s, coalesce(z.ops_per_s, s.most_ops_per_s))
    GROUP BY d.position, s.quantity
),
left_out AS (
    SELECT
        d.position,
        max_by(e.latency_width, e.precision) AS latency_width,
        max_by(e.energy_width, e.precision) AS energy_width
    FROM device AS d
    JOIN left_out_widths() AS e
        ON e.calibration_digest = d.calibration_digest
        AND e.hardware = d.hardware
        AND e.runtime = $runtime
        AND e.precision IN ('', d.precision)
    WHERE $work = 'model'
    GROUP BY d.position
)
SELECT
    d.position,
    coalesce(o.latency_width, t.half_width) AS latency_half_width,
    o.energy_width AS left_out_energy_half_width,
    e.half_width AS energy_half_width,
    CAST(e.group_count AS BIGINT) AS energy_group_count
FROM device AS d
JOIN scale AS t ON t.position = d.position AND t.quantity = 'latency'
JOIN scale AS e ON e.position = d.position AND e.quantity = 'energy'
LEFT JOIN left_out AS o ON o.position = d.position
ORDER BY d.position
