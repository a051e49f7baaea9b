/*
record = "ModelMix"
summary = "Operators of the model of several runs, by kind"
grain = "one row per workload of the requested runs and kind of operator, without views"
[columns]
kind = { heading = "operators", type = "VARCHAR", meaning = "kind of operator: conv, depthwise_conv, linear, matmul, pool ..." }
subgraph_count = { type = "BIGINT", meaning = "subgraphs with an operator of the kind" }
operator_count = { heading = "count", type = "BIGINT", meaning = "operators of the kind" }
mac_count = { heading = "MACs", type = "BIGINT", meaning = "multiply-accumulates of the batch" }
mac_fraction = { heading = "share of MACs", type = "DOUBLE", null = true, meaning = "share of all MACs; null where there are none" }
all_subgraph_count = { type = "BIGINT", meaning = "subgraphs of the workload, without those of views only" }
all_operator_count = { type = "BIGINT", meaning = "operators of the workload, without views" }
all_mac_count = { type = "BIGINT", meaning = "multiply-accumulates of the workload" }
operator_fraction = { heading = "share of operators" }
*/
WITH chosen AS (
    SELECT DISTINCT workload_id
    FROM internal.run
    WHERE run_id IN (SELECT unnest($run_ids))
),
whole AS (
    SELECT
        o.workload_id,
        count(DISTINCT o.subgraph_index) AS all_subgraph_count,
        count(*) AS all_operator_count,
        CAST(sum(o.mac_count) AS BIGINT) AS all_mac_count
    FROM internal.workload_operator AS o
    JOIN chosen AS c ON c.workload_id = o.workload_id
    WHERE o.kind <> 'view'
    GROUP BY o.workload_id
),
mix AS (
    SELECT
        o.workload_id,
        o.kind,
        count(DISTINCT o.subgraph_index) AS subgraph_count,
        count(*) AS operator_count,
        CAST(sum(o.mac_count) AS BIGINT) AS mac_count
    FROM internal.workload_operator AS o
    JOIN chosen AS c ON c.workload_id = o.workload_id
    WHERE o.kind <> 'view'
    GROUP BY o.workload_id, o.kind
)
SELECT
    g.model,
    m.kind,
    m.subgraph_count,
    m.operator_count,
    fraction(m.operator_count, w.all_operator_count) AS operator_fraction,
    m.mac_count,
    fraction(m.mac_count, w.all_mac_count) AS mac_fraction,
    w.all_subgraph_count,
    w.all_operator_count,
    w.all_mac_count,
    m.workload_id
FROM mix AS m
JOIN whole AS w ON w.workload_id = m.workload_id
JOIN internal.workload AS g ON g.workload_id = m.workload_id
ORDER BY g.model, m.workload_id, m.mac_count DESC, m.operator_count DESC, m.kind
