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
        r.run_id,
        unnest([
            {'setting_index': 1, 'setting': 'model', 'value': w.model},
            {'setting_index': 2, 'setting': 'batch', 'value': CAST(r.batch AS VARCHAR)},
            {'setting_index': 3, 'setting': 'input', 'value': w.input_spec},
            {'setting_index': 4, 'setting': 'workload_key', 'value': w.workload_key},
            {'setting_index': 5, 'setting': 'hardware', 'value': v.hardware},
            {'setting_index': 6, 'setting': 'power_mode', 'value': r.power_mode},
            {'setting_index': 7, 'setting': 'precision', 'value': precision_label(r.precision, r.weight_precision)},
            {'setting_index': 8, 'setting': 'runtime', 'value': r.runtime},
            {'setting_index': 9, 'setting': 'calibration', 'value': r.calibration},
            {'setting_index': 10, 'setting': 'hardware_digest', 'value': r.hardware_digest},
            {'setting_index': 11, 'setting': 'formula_version', 'value': r.formula_version},
            {'setting_index': 12, 'setting': 'package_version', 'value': r.package_version},
            {'setting_index': 13, 'setting': 'tracer_version', 'value': w.tracer_version},
            {'setting_index': 14, 'setting': 'torch_version', 'value': w.torch_version},
            {'setting_index': 15, 'setting': 'refusal', 'value': coalesce(r.refusal, 'none')}
        ]) AS one
    FROM run AS r
    JOIN workload AS w ON w.workload_id = r.workload_id
    JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
    WHERE r.run_id IN ($run_a, $run_b)
)
SELECT a.one.setting_index AS setting_index, a.one.setting AS setting, a.one.value AS value_a, b.one.value AS value_b
FROM side AS a
JOIN side AS b ON b.run_id = $run_b AND b.one.setting = a.one.setting
WHERE a.run_id = $run_a AND a.one.value <> b.one.value
ORDER BY setting_index
