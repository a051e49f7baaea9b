/*
name = "cost.grid"
record = "GridFootprint"
version = 1
schema = 1
summary = "Energy and carbon of a million inferences in each grid"
grain = "one row per grid and evaluated run"
order = ["gco2_per_kwh", "region", "gco2_per_million", "hardware", "precision", "batch", "runtime", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs" }
utilization = { type = "DOUBLE", default = -1.0, meaning = "part of the powered or rented hours that a chip works; negative for the catalogue's" }
lifetime_years = { type = "DOUBLE", default = -1.0, meaning = "years that a bought chip serves; negative for the catalogue's" }
hours_per_year = { type = "DOUBLE", default = -1.0, meaning = "hours that a bought chip is powered in a year; negative for the catalogue's" }
pue = { type = "DOUBLE", default = -1.0, meaning = "power usage effectiveness of data centres; negative for the catalogue's" }
usd_per_kwh = { type = "DOUBLE", default = -1.0, meaning = "price of electricity; negative for the catalogue's" }
[columns]
region = { type = "VARCHAR", meaning = "id of the grid" }
name = { type = "VARCHAR", meaning = "of the grid" }
year = { type = "INTEGER", meaning = "of the figure" }
gco2_per_kwh = { type = "DOUBLE", unit = "g/kWh", meaning = "yearly average" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
batch = { type = "INTEGER", meaning = "samples in one input" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
kwh_per_million = { type = "DOUBLE", unit = "kWh", meaning = "work and idling between, times PUE" }
gco2_per_million = { type = "DOUBLE", unit = "g", meaning = "CO2 of it" }
basis = { type = "VARCHAR", meaning = "where the grid's figure comes from" }
source = { type = "VARCHAR", meaning = "document" }
note = { type = "VARCHAR", meaning = "what a reader must know" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
SELECT
    g.region,
    g.name,
    g.year,
    g.gco2_per_kwh,
    c.configured_hardware AS hardware,
    c.precision,
    c.batch,
    c.runtime,
    c.kwh_per_million,
    c.kwh_per_million * g.gco2_per_kwh AS gco2_per_million,
    g.basis,
    g.source,
    g.note,
    c.run_id
FROM configuration_costs(
    $run_ids, $utilization, $lifetime_years, $hours_per_year, $pue, $usd_per_kwh, '', -1e0
) AS c
CROSS JOIN grid_regions AS g
WHERE c.refusal IS NULL
ORDER BY g.gco2_per_kwh, g.region, gco2_per_million, hardware, c.precision, c.batch, c.runtime, c.run_id
