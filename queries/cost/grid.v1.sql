/*
record = "GridFootprint"
summary = "Energy and carbon of a million inferences on each grid"
grain = "one row per grid and evaluated run"
[columns]
region = { type = "VARCHAR", meaning = "id of the grid" }
name = { type = "VARCHAR", meaning = "name of the grid" }
year = { type = "INTEGER", meaning = "year of the figure" }
gco2_per_kwh = { type = "DOUBLE", unit = "g/kWh", meaning = "carbon intensity, yearly average" }
gco2_per_million = { type = "DOUBLE", unit = "g", meaning = "CO2 of a million inferences" }
basis = { type = "VARCHAR", meaning = "basis of the grid's figure" }
source = { type = "VARCHAR", meaning = "document with the figure" }
*/
SELECT
    g.region,
    g.name,
    g.year,
    g.gco2_per_kwh,
    c.hardware,
    c.precision,
    c.batch,
    c.runtime,
    c.kwh_per_million,
    c.kwh_per_million * g.gco2_per_kwh AS gco2_per_million,
    g.basis,
    g.source,
    g.note,
    c.run_id
FROM cube.cost(
    run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years,
    hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh
) AS c
CROSS JOIN grid_regions AS g
WHERE c.status = 'ok'
ORDER BY g.gco2_per_kwh, g.region, gco2_per_million, hardware, c.precision, c.batch, c.runtime, c.run_id
