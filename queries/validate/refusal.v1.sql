/*
record = "ServingRefusal"
summary = "Measurements of served models without a prediction, with the reasons"
grain = "one row per source, hardware and reason"
[parameters]
model = { type = "VARCHAR", default = "", meaning = "text that model names must contain, ignoring case; empty for all" }
source = { type = "VARCHAR", default = "", meaning = "text that source names must contain, ignoring case; empty for all" }
[columns]
source = { type = "VARCHAR", meaning = "source of the measurements" }
hardware = { type = "VARCHAR", meaning = "catalogue id, or the name of hardware outside the catalogue" }
refusal = { type = "VARCHAR", meaning = "reason for the missing prediction" }
refusal_code = { type = "VARCHAR", meaning = "kind of the reason; other for a reason without a kind" }
measurement_count = { type = "BIGINT", meaning = "number of measurements with a quantity that is not predicted" }
quantity_count = { type = "BIGINT", meaning = "number of quantities of these measurements that are not predicted" }
*/
SELECT
    source, hardware, refusal, refusal_code,
    count(DISTINCT serving_measurement_id) AS measurement_count,
    count(*) AS quantity_count
FROM serving_refusals
WHERE ($hardware = '' OR hardware = $hardware)
    AND contains(lower(model), lower($model))
    AND contains(lower(source), lower($source))
GROUP BY source, hardware, refusal, refusal_code
ORDER BY source, hardware, measurement_count DESC, refusal
