/*
summary = "Models whose operators were measured one by one, with the share of their time that traced operators account for"
grain = "one row per chip, model, precision, matmul precision, batch and runtime"
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
model = { type = "VARCHAR", meaning = "model name" }
precision = { type = "VARCHAR", meaning = "precision as measured" }
matmul_precision = { type = "VARCHAR", meaning = "arithmetic of GEMMs and convolutions at fp32, as measured; default at other precisions" }
group_count = { type = "BIGINT", meaning = "groups of operators with the same operation and shapes" }
operator_count = { type = "BIGINT", meaning = "operators in these groups" }
call_count = { type = "BIGINT", meaning = "calls of kernels, matched or not" }
device_time_s = { type = "DOUBLE", unit = "s", meaning = "device time of all kernels, without the gaps between them" }
matched_fraction = { type = "DOUBLE", meaning = "share of device_time_s that operators of the trace account for" }
unmatched = { type = "VARCHAR", meaning = "kernels that no operator accounts for, with the shapes of their arguments" }
source = { type = "VARCHAR", meaning = "source of the rows" }
conditions = { type = "VARCHAR", meaning = "conditions under which the times were measured" }
*/
SELECT
    hardware, model, "precision", matmul_precision, batch, runtime,
    count(*) FILTER (WHERE operation <> '') AS group_count,
    CAST(sum(operator_count) AS BIGINT) AS operator_count,
    CAST(sum(call_count) AS BIGINT) AS call_count,
    sum(device_time_s ORDER BY device_time_s) AS device_time_s,
    coalesce(sum(device_time_s ORDER BY device_time_s) FILTER (WHERE operation <> ''), 0e0)
        / sum(device_time_s ORDER BY device_time_s) AS matched_fraction,
    coalesce(
        string_agg(concat(kernels, ' ', shapes), ', ' ORDER BY device_time_s DESC, kernels, shapes)
            FILTER (WHERE operation = ''),
        ''
    ) AS unmatched,
    source, conditions
FROM operator_measurements
WHERE ($hardware = '' OR hardware = $hardware)
    AND ($model = '' OR model = $model)
    AND ($precision = '' OR precision = $precision)
GROUP BY hardware, model, precision, matmul_precision, batch, runtime, source, conditions
ORDER BY hardware, model, precision, matmul_precision, batch, runtime
