/*
name = "model.list"
version = 1
schema = 2
summary = "Models that can be asked for by name"
grain = "one row per model"
order = ["name"]
[columns]
name = { type = "VARCHAR", meaning = "what `compare` takes" }
family = { type = "VARCHAR", meaning = "family of architectures" }
task = { type = "VARCHAR", meaning = "classification, segmentation, video ..." }
input_shape = { type = "VARCHAR", meaning = "of one sample" }
parameter_count = { type = "BIGINT", meaning = "as published with the default weights" }
mac_count = { type = "BIGINT", meaning = "traced at batch 1 if a workload is stored, else as published" }
is_traceable = { type = "BOOLEAN", meaning = "whether joulemap traces it" }
is_stored = { type = "BOOLEAN", meaning = "whether a workload is stored" }
reason = { type = "VARCHAR", meaning = "why not traceable, if not" }
*/
WITH traced AS (
    SELECT w.model, w.workload_id, CAST(sum(o.mac_count) AS BIGINT) AS mac_count
    FROM workload AS w
    JOIN workload_operator AS o ON o.workload_id = w.workload_id
    WHERE w.batch = 1
    GROUP BY w.model, w.workload_id
    QUALIFY row_number() OVER (PARTITION BY w.model ORDER BY w.workload_id DESC) = 1
)
SELECT
    m.model AS name,
    m.family,
    m.task,
    m.input_shape,
    m.parameter_count,
    coalesce(t.mac_count, m.published_mac_count) AS mac_count,
    m.is_traceable,
    EXISTS (SELECT 1 FROM workload AS w WHERE w.model = m.model) AS is_stored,
    m.reason
FROM model_entry AS m
LEFT JOIN traced AS t ON t.model = m.model
ORDER BY m.model
