-- What choosing among configurations needs: assumptions of use, grids, and the figures of many runs side by side.

CREATE TABLE cost_assumption (
    assumption_index INTEGER NOT NULL CHECK (assumption_index >= 0),
    assumption VARCHAR PRIMARY KEY,
    value DOUBLE NOT NULL CHECK (value >= 0),
    unit VARCHAR NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE cost_assumption IS 'What a price per inference assumes of the use of a chip, of the current catalogue';
COMMENT ON COLUMN cost_assumption.assumption_index IS 'Order in the catalogue';
COMMENT ON COLUMN cost_assumption.assumption IS 'utilization, lifetime, hours, pue or electricity';
COMMENT ON COLUMN cost_assumption.value IS 'In unit';
COMMENT ON COLUMN cost_assumption.unit IS 'As its name is used: 1, year, h/year, USD/kWh';
COMMENT ON COLUMN cost_assumption.basis IS 'Where the number comes from';
COMMENT ON COLUMN cost_assumption.source IS 'Document or arithmetic';
COMMENT ON COLUMN cost_assumption.note IS 'What a reader must know to use it well';

CREATE TABLE grid_region (
    region_index INTEGER NOT NULL CHECK (region_index >= 0),
    region VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    year INTEGER NOT NULL,
    gco2_per_kwh DOUBLE NOT NULL CHECK (gco2_per_kwh >= 0),
    basis VARCHAR NOT NULL CHECK (basis IN ('measured', 'published', 'derived', 'scaled', 'recalled', 'assumed')),
    source VARCHAR NOT NULL CHECK (source <> ''),
    note VARCHAR NOT NULL
);
COMMENT ON TABLE grid_region IS 'How much carbon dioxide a kilowatt-hour stands for, by grid, of the current catalogue';
COMMENT ON COLUMN grid_region.region_index IS 'Order in the catalogue';
COMMENT ON COLUMN grid_region.region IS 'Id: world, eu, or a country''s two letters';
COMMENT ON COLUMN grid_region.name IS 'Name for people';
COMMENT ON COLUMN grid_region.year IS 'Of the figure';
COMMENT ON COLUMN grid_region.gco2_per_kwh IS 'Yearly average, grams of CO2 equivalents';
COMMENT ON COLUMN grid_region.basis IS 'Where the number comes from';
COMMENT ON COLUMN grid_region.source IS 'Document or arithmetic';
COMMENT ON COLUMN grid_region.note IS 'What a reader must know to use it well';

CREATE VIEW cost_assumptions AS
SELECT assumption, value, unit, basis, source, note, assumption_index
FROM cost_assumption;
COMMENT ON VIEW cost_assumptions IS 'What a price per inference assumes where nothing else is said';

CREATE VIEW grid_regions AS
SELECT region, name, year, gco2_per_kwh, basis, source, note, region_index
FROM grid_region;
COMMENT ON VIEW grid_regions IS 'Carbon dioxide per kilowatt-hour by grid';

-- A configuration in words: jetson_orin_nano_8gb@15W int8 batch 8, with the runtime where it is not fused.
CREATE MACRO configuration_label(hardware, power_mode, "precision", batch, runtime) AS
    configuration_name(hardware, power_mode) || ' ' || "precision" || ' batch ' || batch
        || CASE WHEN runtime = 'fused' THEN '' ELSE ' ' || runtime END;

-- An assumption as a person gave it, or for a negative number that of the catalogue.
CREATE MACRO assumed(name, given) AS
    CASE WHEN given >= 0e0 THEN given ELSE (SELECT a.value FROM cost_assumption AS a WHERE a.assumption = name) END;

-- Grams of CO2 per kWh as a person gave them, or for a negative number those of a region; of the world for ''.
CREATE MACRO assumed_gco2_per_kwh(region_id, given) AS
    CASE
        WHEN given >= 0e0 THEN given
        ELSE (
            SELECT g.gco2_per_kwh
            FROM grid_region AS g
            WHERE g.region = CASE WHEN region_id = '' THEN 'world' ELSE region_id END
        )
    END;

-- One row per run, refused ones included with null figures. Latency and memory are of the batch; energy and edp_js are
-- of one inference: its share of the batch's energy, and that share x the latency that it waits for.
CREATE MACRO configurations(run_ids) AS TABLE
WITH asked AS (
    SELECT DISTINCT unnest(run_ids) AS run_id
),
time AS (
    SELECT s.run_id, CAST(sum(s.latency_fs) AS DOUBLE) AS latency_fs
    FROM run_subgraph AS s
    JOIN asked AS a ON a.run_id = s.run_id
    GROUP BY s.run_id
),
energy AS (
    SELECT l.run_id, sum(l.energy_fj) AS energy_fj
    FROM ledger_line AS l
    JOIN asked AS a ON a.run_id = l.run_id
    GROUP BY l.run_id
),
fact AS (
    SELECT
        f.hardware_digest,
        max(f.value) FILTER (WHERE f.quantity = 'price_cloud') AS price_cloud_usd_per_hour,
        max(f.value) FILTER (WHERE f.quantity = 'price_purchase') AS price_purchase_usd,
        max(f.value) FILTER (WHERE f.quantity = 'idle_power') AS idle_power_w,
        max(f.value) FILTER (WHERE f.quantity = 'static_power') AS static_power_w
    FROM hardware_fact AS f
    WHERE f.quantity IN ('price_cloud', 'price_purchase', 'idle_power', 'static_power')
    GROUP BY f.hardware_digest
)
SELECT
    r.run_id,
    w.model,
    v.hardware,
    r.power_mode,
    v.architecture,
    v.deployment,
    r.precision,
    r.batch,
    r.runtime,
    t.latency_fs / 1e15 AS latency_s,
    joules(e.energy_fj) / r.batch AS energy_per_inference_j,
    r.batch / nullif(t.latency_fs / 1e15, 0e0) AS throughput_per_s,
    CAST(e.energy_fj AS DOUBLE) / nullif(t.latency_fs, 0e0) AS average_power_w,
    r.weight_bytes + r.activation_bytes AS peak_memory_bytes,
    joules(e.energy_fj) / r.batch * (t.latency_fs / 1e15) AS edp_js,
    f.price_cloud_usd_per_hour,
    f.price_purchase_usd,
    coalesce(f.idle_power_w, f.static_power_w) AS idle_power_w,
    CASE WHEN f.idle_power_w IS NULL THEN 'static_power' ELSE 'idle_power' END AS idle_quantity,
    v.projection <> '' AS is_projection,
    r.refusal,
    r.hardware_digest
FROM asked AS a
JOIN run AS r ON r.run_id = a.run_id
JOIN workload AS w ON w.workload_id = r.workload_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
LEFT JOIN time AS t ON t.run_id = r.run_id
LEFT JOIN energy AS e ON e.run_id = r.run_id
LEFT JOIN fact AS f ON f.hardware_digest = r.hardware_digest;

-- The same rows with what a million inferences need, cost and emit. A chip is powered (or rented) for
-- 1 / (throughput x utilization) seconds per inference: it works for 1 / throughput, and idles for the rest.
-- cloud_usd_per_million contains the energy; a bought chip costs purchase_usd_per_million and energy_usd_per_million.
CREATE MACRO configuration_costs(
    run_ids, utilization, lifetime_years, hours_per_year, pue, usd_per_kwh, region, gco2_per_kwh
) AS TABLE
WITH assumption AS (
    SELECT
        assumed('utilization', utilization) AS utilization_fraction,
        assumed('lifetime', lifetime_years) AS life_years,
        assumed('hours', hours_per_year) AS powered_hours_per_year,
        assumed('pue', pue) AS pue_ratio,
        assumed('electricity', usd_per_kwh) AS electricity_usd_per_kwh,
        assumed_gco2_per_kwh(region, gco2_per_kwh) AS grid_gco2_per_kwh
),
powered AS (
    SELECT
        c.run_id,
        c.model,
        c.hardware,
        c.power_mode,
        c.architecture,
        c.precision,
        c.batch,
        c.runtime,
        c.latency_s,
        c.energy_per_inference_j,
        c.throughput_per_s,
        c.average_power_w,
        c.peak_memory_bytes,
        c.edp_js,
        c.price_cloud_usd_per_hour,
        c.price_purchase_usd,
        c.idle_power_w,
        c.idle_quantity,
        c.is_projection,
        c.refusal,
        c.hardware_digest,
        a.electricity_usd_per_kwh,
        a.grid_gco2_per_kwh,
        CASE WHEN list_contains(c.deployment, 'datacenter') THEN a.pue_ratio ELSE 1e0 END AS pue_ratio,
        1e6 / (c.throughput_per_s * a.utilization_fraction) / 3600e0 AS hours_per_million,
        c.throughput_per_s * a.utilization_fraction * 3600e0 * a.powered_hours_per_year AS inferences_per_year,
        c.throughput_per_s * a.utilization_fraction * 3600e0 * a.powered_hours_per_year * a.life_years
            AS inferences_per_life,
        c.energy_per_inference_j
            + c.idle_power_w * (1e0 - a.utilization_fraction) / a.utilization_fraction / c.throughput_per_s
            AS powered_j
    FROM configurations(run_ids) AS c
    CROSS JOIN assumption AS a
)
SELECT
    p.run_id,
    p.model,
    p.hardware,
    p.power_mode,
    p.architecture,
    p.precision,
    p.batch,
    p.runtime,
    p.latency_s,
    p.energy_per_inference_j,
    p.throughput_per_s,
    p.average_power_w,
    p.peak_memory_bytes,
    p.edp_js,
    p.price_cloud_usd_per_hour,
    p.price_purchase_usd,
    p.idle_power_w,
    p.idle_quantity,
    p.is_projection,
    p.refusal,
    p.hardware_digest,
    p.pue_ratio,
    p.inferences_per_year,
    p.inferences_per_life,
    p.powered_j * p.pue_ratio * 1e6 / 3.6e6 AS kwh_per_million,
    p.powered_j * p.pue_ratio * 1e6 / 3.6e6 * p.grid_gco2_per_kwh AS gco2_per_million,
    p.price_cloud_usd_per_hour * p.hours_per_million AS cloud_usd_per_million,
    p.price_purchase_usd / p.inferences_per_life * 1e6 AS purchase_usd_per_million,
    p.powered_j * p.pue_ratio * 1e6 / 3.6e6 * p.electricity_usd_per_kwh AS energy_usd_per_million,
    least(
        p.price_cloud_usd_per_hour * p.hours_per_million,
        p.price_purchase_usd / p.inferences_per_life * 1e6
            + p.powered_j * p.pue_ratio * 1e6 / 3.6e6 * p.electricity_usd_per_kwh
    ) AS usd_per_million
FROM powered AS p;

-- What configurations are compared in; `one` is a row of configuration_costs. Null where no price is known.
CREATE MACRO metric_value(metric, one) AS
    CASE metric
        WHEN 'latency' THEN one.latency_s
        WHEN 'energy' THEN one.energy_per_inference_j
        WHEN 'throughput' THEN one.throughput_per_s
        WHEN 'power' THEN one.average_power_w
        WHEN 'memory' THEN CAST(one.peak_memory_bytes AS DOUBLE)
        WHEN 'edp' THEN one.edp_js
        WHEN 'price' THEN one.price_cloud_usd_per_hour
        WHEN 'purchase' THEN one.price_purchase_usd
        WHEN 'cost' THEN one.usd_per_million
        WHEN 'carbon' THEN one.gco2_per_million
        ELSE error(
            'unknown metric ' || metric || ', expected latency, energy, throughput, power, memory, edp, price, '
                || 'purchase, cost or carbon'
        )
    END;

CREATE MACRO metric_unit(metric) AS
    CASE metric
        WHEN 'latency' THEN 's'
        WHEN 'energy' THEN 'J'
        WHEN 'throughput' THEN '1/s'
        WHEN 'power' THEN 'W'
        WHEN 'memory' THEN 'B'
        WHEN 'edp' THEN 'Js'
        WHEN 'price' THEN 'USD/h'
        WHEN 'purchase' THEN 'USD'
        WHEN 'cost' THEN 'USD'
        WHEN 'carbon' THEN 'g'
    END;

-- What is missing where a metric is null.
CREATE MACRO price_name(metric) AS
    CASE metric
        WHEN 'price' THEN 'cloud price'
        WHEN 'purchase' THEN 'purchase price'
        ELSE 'cloud or purchase price'
    END;

-- How many times better a value is than another one: above 1 where it is.
CREATE MACRO better_ratio(metric, value, other) AS
    CASE WHEN metric = 'throughput' THEN value / nullif(other, 0e0) ELSE other / nullif(value, 0e0) END;

-- The metric as a cost: lower is better.
CREATE MACRO metric_cost(metric, value) AS CASE WHEN metric = 'throughput' THEN -value ELSE value END;

-- The limits above 0 that a row of configurations or configuration_costs does not keep; an unknown price keeps none.
-- violation_fraction is value / bound - 1, for throughput bound / value - 1.
CREATE MACRO missed_limits(
    one, max_latency_s, max_energy_j, max_memory_bytes, max_power_w, min_throughput_per_s, max_price_usd_per_hour,
    max_purchase_usd
) AS
    list_transform(
        list_filter(
            [
                {'limit_index': 1, 'metric': 'latency', 'value': one.latency_s, 'bound': 0e0 + max_latency_s},
                {
                    'limit_index': 2,
                    'metric': 'energy',
                    'value': one.energy_per_inference_j,
                    'bound': 0e0 + max_energy_j
                },
                {
                    'limit_index': 3,
                    'metric': 'memory',
                    'value': 0e0 + one.peak_memory_bytes,
                    'bound': 0e0 + max_memory_bytes
                },
                {'limit_index': 4, 'metric': 'power', 'value': one.average_power_w, 'bound': 0e0 + max_power_w},
                {
                    'limit_index': 5,
                    'metric': 'throughput',
                    'value': one.throughput_per_s,
                    'bound': 0e0 + min_throughput_per_s
                },
                {
                    'limit_index': 6,
                    'metric': 'price',
                    'value': one.price_cloud_usd_per_hour,
                    'bound': 0e0 + max_price_usd_per_hour
                },
                {
                    'limit_index': 7,
                    'metric': 'purchase',
                    'value': one.price_purchase_usd,
                    'bound': 0e0 + max_purchase_usd
                }
            ],
            lambda bounded: bounded.bound > 0e0
                AND NOT coalesce(
                    metric_cost(bounded.metric, bounded.value) <= metric_cost(bounded.metric, bounded.bound), FALSE
                )
        ),
        lambda missed: {
            'limit_index': missed.limit_index,
            'limit_name': missed.metric,
            'value': missed.value,
            'bound': missed.bound,
            'excess': metric_cost(missed.metric, missed.value) - metric_cost(missed.metric, missed.bound),
            'violation_fraction': better_ratio(missed.metric, missed.bound, missed.value) - 1e0,
            'unit': metric_unit(missed.metric)
        }
    );
