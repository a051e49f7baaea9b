/*
record = "AssumedNumber"
summary = "Assumptions of a cost per inference, each with its source"
grain = "one row per assumption"
table = ["assumption", "value.kept", "unit.kept", "basis.kept", "source.kept", "note"]
[parameters]
gco2_per_kwh = { type = "DOUBLE", default = -1.0, meaning = "grams of CO2 per kWh in place of the region's; negative for the region's" }
[columns]
assumption_index = { type = "INTEGER", meaning = "fixed order" }
assumption = { type = "VARCHAR", meaning = "utilization, lifetime, hours, pue, electricity, host or grid" }
unit = { type = "VARCHAR", meaning = "1, year, h/year, USD/kWh or g/kWh" }
basis = { type = "VARCHAR", meaning = "basis of the number; `given` for a number of the question" }
source = { type = "VARCHAR", meaning = "document or arithmetic; the question for a given number" }
note = { type = "VARCHAR", meaning = "caveats about the number" }
value = { type = "DOUBLE", meaning = "value in unit" }
*/
WITH given AS (
    SELECT unnest([
        {'assumption': 'utilization', 'value': CAST($utilization AS DOUBLE)},
        {'assumption': 'lifetime', 'value': CAST($lifetime_years AS DOUBLE)},
        {'assumption': 'hours', 'value': CAST($hours_per_year AS DOUBLE)},
        {'assumption': 'pue', 'value': CAST($pue AS DOUBLE)},
        {'assumption': 'electricity', 'value': CAST($usd_per_kwh AS DOUBLE)},
        {'assumption': 'host', 'value': CAST($host_share AS DOUBLE)},
        {'assumption': 'grid', 'value': CAST($gco2_per_kwh AS DOUBLE)}
    ], recursive := TRUE)
),
known AS (
    SELECT a.assumption_index, a.assumption, a.value, a.unit, a.basis, a.source, a.note
    FROM cost_assumptions AS a
    UNION ALL
    SELECT
        (SELECT CAST(count(*) AS INTEGER) FROM cost_assumptions),
        'grid',
        g.gco2_per_kwh,
        'g/kWh',
        g.basis,
        g.source,
        concat_ws('; ', g.name || ', ' || g.year, nullif(g.note, ''))
    FROM grid_regions AS g
    WHERE g.region = CASE WHEN $region = '' THEN 'world' ELSE $region END
)
SELECT
    k.assumption_index,
    k.assumption,
    CASE WHEN g.value >= 0e0 THEN g.value ELSE k.value END AS value,
    k.unit,
    CASE WHEN g.value >= 0e0 THEN 'given' ELSE k.basis END AS basis,
    CASE WHEN g.value >= 0e0 THEN 'the question' ELSE k.source END AS source,
    CASE WHEN g.value >= 0e0 AND k.assumption = 'grid' THEN '' ELSE k.note END AS note
FROM known AS k
JOIN given AS g ON g.assumption = k.assumption
ORDER BY k.assumption_index
