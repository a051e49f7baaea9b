/*
record = "CategoryDifference"
summary = "Energy or time of two runs by common category, with the parts of each difference due to amounts and to energy or time per unit"
grain = "one row per category of either run; categories sum to the difference B minus A, exactly"
order = ["absolute difference_exact descending", "quantity", "category"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
metric = { type = "VARCHAR", default = "energy", meaning = "metric: latency divides time, edp both energy and time, any other energy" }
[columns]
quantity = { type = "VARCHAR", meaning = "kind: energy or time" }
category = { type = "VARCHAR", meaning = "for energy: compute, register, on_chip_memory, interconnect, off_chip_memory, communication, control, board, unattributed, host or static; for time: compute, memory or launch" }
spent_a_exact = { type = "HUGEINT", meaning = "exact amount on A, fJ of energy or fs of time" }
spent_b_exact = { type = "HUGEINT", meaning = "exact amount on B" }
spent_a = { shown = "in spent_unit", type = "DOUBLE", meaning = "amount on A, in spent_unit" }
spent_b = { shown = "in spent_unit", type = "DOUBLE", meaning = "amount on B" }
work_a = { type = "DOUBLE", null = true, meaning = "amount of work on A for time, as in explain.delay; null for energy" }
work_b = { type = "DOUBLE", null = true, meaning = "amount of work on B for time; null for energy" }
spent_unit = { type = "VARCHAR", meaning = "J or s" }
difference_exact = { type = "HUGEINT", meaning = "exact contribution to the difference B minus A, in fJ or fs; for edp twice the contribution to the runs, in fJ fs, also for a subgraph" }
difference = { shown = "+", type = "DOUBLE", meaning = "contribution to the difference, in unit" }
by_count_exact = { type = "HUGEINT", meaning = "part of difference_exact due to different counts or amounts; for static power, to a longer or shorter time" }
by_price_exact = { type = "HUGEINT", meaning = "part of difference_exact due to a different energy per action or time per unit of work; for static power, to more or fewer watts" }
by_presence_exact = { type = "HUGEINT", meaning = "part of difference_exact that only one run has: roles without a counterpart, and subgraphs with this bottleneck on one side alone" }
unit = { type = "VARCHAR", meaning = "J, s or Js" }
difference_fraction = { type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
*/
WITH part AS (
    SELECT
        'energy' AS quantity,
        category,
        sum(energy_a_fj) AS spent_a,
        sum(energy_b_fj) AS spent_b,
        sum(by_count_fj) AS by_count,
        sum(by_price_fj) AS by_price,
        CAST(NULL AS DOUBLE) AS work_a,
        CAST(NULL AS DOUBLE) AS work_b,
        any_value(energy_weight) AS weight
    FROM explain.role(run_a := $run_a, run_b := $run_b, subgraph := $subgraph)
    CROSS JOIN cube.weight(run_a := $run_a, run_b := $run_b, metric := $metric)
    WHERE $metric <> 'latency'
    GROUP BY category
    UNION ALL
    SELECT
        'time',
        resource,
        sum(spent_a_fs),
        sum(spent_b_fs),
        sum(by_work_fs),
        sum(CASE WHEN is_met THEN spent_b_fs - spent_a_fs - by_work_fs ELSE 0 END),
        sum(work_a),
        sum(work_b),
        any_value(time_weight)
    FROM explain.delay(run_a := $run_a, run_b := $run_b, subgraph := $subgraph)
    CROSS JOIN cube.weight(run_a := $run_a, run_b := $run_b, metric := $metric)
    WHERE $metric IN ('latency', 'edp')
    GROUP BY resource
)
SELECT
    quantity,
    category,
    spent_a AS spent_a_exact,
    spent_b AS spent_b_exact,
    joules(spent_a) AS spent_a,
    joules(spent_b) AS spent_b,
    work_a,
    work_b,
    CASE quantity WHEN 'energy' THEN 'J' ELSE 's' END AS spent_unit,
    (spent_b - spent_a) * weight AS difference_exact,
    CAST((spent_b - spent_a) * weight AS DOUBLE) / CASE WHEN $metric = 'edp' THEN 2e30 ELSE 1e15 END AS difference,
    CASE WHEN $metric = 'edp' THEN 'Js' WHEN quantity = 'energy' THEN 'J' ELSE 's' END AS unit,
    fraction((spent_b - spent_a) * weight, sum((spent_b - spent_a) * weight) OVER ()) AS difference_fraction,
    by_count * weight AS by_count_exact,
    by_price * weight AS by_price_exact,
    (spent_b - spent_a - by_count - by_price) * weight AS by_presence_exact
FROM part
ORDER BY abs((spent_b - spent_a) * weight) DESC, quantity, category
