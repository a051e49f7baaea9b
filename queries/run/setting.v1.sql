/*
record = "Setting"
summary = "Settings, versions and digests in which two runs differ"
grain = "one row per setting that differs"
table = ["setting", "value_a", "value_b"]
[parameters]
run_b = { type = "INTEGER", meaning = "number of run B" }
[columns]
setting_index = { type = "INTEGER", meaning = "fixed order" }
setting = { type = "VARCHAR", meaning = "setting that differs" }
value_a = { heading = "A", type = "VARCHAR", meaning = "value on A" }
value_b = { heading = "B", type = "VARCHAR", meaning = "value on B" }
*/
WITH side AS (
    SELECT run_id, setting_index, setting, value
    FROM run_settings
    UNION ALL
    SELECT run_id, 100 + one.position, one.setting, one.value
    FROM (
        SELECT
            run_id,
            unnest([
                {'position': 1, 'setting': 'calibration', 'value': calibration},
                {'position': 2, 'setting': 'workload_key', 'value': workload_key},
                {'position': 3, 'setting': 'hardware_digest', 'value': hardware_digest},
                {'position': 4, 'setting': 'formula_version', 'value': formula_version},
                {'position': 5, 'setting': 'package_version', 'value': package_version},
                {'position': 6, 'setting': 'tracer_version', 'value': tracer_version},
                {'position': 7, 'setting': 'torch_version', 'value': torch_version},
                {'position': 8, 'setting': 'refusal', 'value': coalesce(refusal, 'none')}
            ]) AS one
        FROM run_configurations
    )
)
SELECT CAST(a.setting_index AS INTEGER) AS setting_index, a.setting, a.value AS value_a, b.value AS value_b
FROM side AS a
JOIN side AS b ON b.run_id = $run_b AND b.setting = a.setting
WHERE a.run_id = $run_a AND a.value <> b.value
ORDER BY setting_index
