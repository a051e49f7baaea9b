/*
record = "ServingRefusal"
summary = "Measurements of served models that no prediction scores, and why"
grain = "one row per source, hardware and reason"
[parameters]
model = { type = "VARCHAR", default = "", meaning = "only models whose names hold this text, whatever the case; empty for all" }
source = { type = "VARCHAR", default = "", meaning = "only measurements whose source holds this text, whatever the case; empty for all" }
[columns]
source = { type = "VARCHAR", meaning = "where the measurements come from" }
hardware = { type = "VARCHAR", meaning = "catalogue id, or the name of hardware that the catalogue does not have" }
refusal = { type = "VARCHAR", meaning = "why there is no prediction" }
measurement_count = { type = "BIGINT", meaning = "measurements of which at least one quantity is not predicted" }
quantity_count = { type = "BIGINT", meaning = "quantities of these that are not predicted" }
*/
SELECT
    source, hardware, refusal,
    count(DISTINCT serving_measurement_id) AS measurement_count,
    count(*) AS quantity_count
FROM serving_refusals
WHERE ($hardware = '' OR hardware = $hardware)
    AND contains(lower(model), lower($model))
    AND contains(lower(source), lower($source))
GROUP BY source, hardware, refusal
ORDER BY source, hardware, measurement_count DESC, refusal
