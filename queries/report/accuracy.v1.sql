/*
record = "PredictionStanding"
summary = "Errors of predictions similar to each run, with the measured hardware nearest to the run's"
grain = "one row per run and quantity; refused runs are omitted"
table = ["hardware", "quantity", "half_width", "standing", "measurement_count"]
order = ["run as in run_ids", "quantity, latency before energy"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`" }
[columns]
half_width = { heading = "80 % interval", shown = "±", type = "DOUBLE", meaning = "half-width of the 80 % interval of ln(measured / predicted)" }
standing = { heading = "scored on", type = "VARCHAR", values = "Standing", meaning = "measured hardware: this hardware, its class, or other classes" }
basis = { type = "VARCHAR", meaning = "origin of the interval" }
measurement_count = { heading = "measurements", type = "BIGINT", null = true, meaning = "number of measurements behind the interval; null for other classes" }
group_count = { heading = "groups", type = "BIGINT", null = true, meaning = "number of pairs of model family and board behind the interval; null for other classes" }
calibration = { type = "VARCHAR", meaning = "calibration of the run; none for the class defaults" }
quantity = { type = "VARCHAR", meaning = "latency or energy" }
*/
WITH uncertain AS MATERIALIZED (
    SELECT
        u.run_id,
        u.latency_basis,
        u.energy_basis,
        u.latency_group_count,
        u.energy_group_count,
        unnest([
            {
                'position': 1,
                'quantity': 'latency',
                'half_width': u.latency_half_width,
                'basis': u.latency_basis,
                'group_count': u.latency_group_count
            },
            {
                'position': 2,
                'quantity': 'energy',
                'half_width': u.energy_half_width,
                'basis': u.energy_basis,
                'group_count': u.energy_group_count
            }
        ]) AS one
    FROM internal.run_total AS u
    WHERE u.run_id IN (SELECT unnest($run_ids)) AND u.latency_half_width IS NOT NULL
),
subject AS (
    SELECT
        r.run_id AS row_id,
        work_of(w.model, w.work) AS work,
        v.architecture,
        r.runtime,
        r.precision,
        v.hardware,
        (
            SELECT max(p.peak_ops_per_s)
            FROM internal.hardware_precision AS p
            WHERE p.hardware_digest = r.hardware_digest
        ) AS ops_per_s,
        r.calibration_digest
    FROM internal.run AS r
    JOIN internal.workload AS w ON w.workload_id = r.workload_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
scale AS (FROM numpy.scales_of(subject))
SELECT
    f.model,
    f.configured_hardware AS hardware,
    u.one.quantity AS quantity,
    u.one.half_width AS half_width,
    CASE
        WHEN u.one.basis = 'its calibration' OR s.level = 7 THEN 'this hardware'
        WHEN s.level >= 2 THEN 'its class'
        ELSE 'other classes'
    END AS standing,
    u.one.basis AS basis,
    CASE
        WHEN u.one.basis = 'its calibration' THEN CAST(c.measurement_count AS BIGINT)
        WHEN s.level >= 2 THEN CAST(s.row_count AS BIGINT)
    END AS measurement_count,
    CASE
        WHEN u.one.basis = 'its calibration' THEN len(c.families)
        WHEN s.level >= 2 THEN CAST(u.one.group_count AS BIGINT)
    END AS group_count,
    coalesce(c.calibration, 'none') AS calibration,
    u.run_id
FROM uncertain AS u
JOIN internal.run AS r ON r.run_id = u.run_id
JOIN run_configurations AS f ON f.run_id = u.run_id
JOIN scale AS s ON s.row_id = u.run_id AND s.quantity = CASE u.one.quantity WHEN 'energy' THEN 'power' ELSE u.one.quantity END
LEFT JOIN calibrations AS c ON c.calibration_digest = r.calibration_digest
ORDER BY list_position($run_ids, u.run_id), u.run_id, u.one.position
