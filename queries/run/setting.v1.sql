/*
name = "run.setting"
record = "Setting"
version = 1
schema = 1
summary = "Settings, versions and digests in which two runs differ"
grain = "one row per setting that differs"
order = ["setting_index"]
[parameters]
run_a = { type = "INTEGER", meaning = "run A" }
run_b = { type = "INTEGER", meaning = "run B" }
[columns]
setting_index = { type = "INTEGER", meaning = "fixed order" }
setting = { type = "VARCHAR", meaning = "what differs" }
value_a = { type = "VARCHAR", meaning = "on A" }
value_b = { type = "VARCHAR", meaning = "on B" }
*/
WITH side AS (
    SELECT
        run_id,
        unnest(list_transform(list_concat(dimensions, [
            {'setting': 'calibration', 'value': calibration},
            {'setting': 'workload_key', 'value': workload_key},
            {'setting': 'hardware_digest', 'value': hardware_digest},
            {'setting': 'formula_version', 'value': formula_version},
            {'setting': 'package_version', 'value': package_version},
            {'setting': 'tracer_version', 'value': tracer_version},
            {'setting': 'torch_version', 'value': torch_version},
            {'setting': 'refusal', 'value': coalesce(refusal, 'none')}
        ]), lambda one, place: {
            'setting_index': CAST(place AS INTEGER), 'setting': one.setting, 'value': one.value
        })) AS one
    FROM run_configurations
    WHERE run_id IN ($run_a, $run_b)
)
SELECT a.one.setting_index AS setting_index, a.one.setting AS setting, a.one.value AS value_a, b.one.value AS value_b
FROM side AS a
JOIN side AS b ON b.run_id = $run_b AND b.one.setting = a.one.setting
WHERE a.run_id = $run_a AND a.one.value <> b.one.value
ORDER BY setting_index
