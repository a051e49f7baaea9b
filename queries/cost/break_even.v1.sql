/*
name = "cost.break_even"
record = "BreakEven"
version = 1
schema = 1
summary = "From how many inferences on the option with the higher price to begin with is the cheaper one"
grain = "one row, or none where one of the options has no price"
order = ["the only row"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to choose from, of one model" }
hardware_a = { type = "VARCHAR", default = "", meaning = "option A, at its cheapest run; with @MODE for one power mode, empty for the cheapest hardware that can be bought and is no projection" }
way_a = { type = "VARCHAR", default = "", meaning = "cloud or purchase; empty for the cheaper, or for purchase where no hardware is named" }
hardware_b = { type = "VARCHAR", default = "", meaning = "option B, likewise" }
way_b = { type = "VARCHAR", default = "", meaning = "cloud or purchase; empty for the cheaper, or for cloud where no hardware is named" }
utilization = { type = "DOUBLE", default = -1.0, meaning = "part of the powered or rented hours that a chip works; negative for the catalogue's" }
lifetime_years = { type = "DOUBLE", default = -1.0, meaning = "years that a bought chip serves; negative for the catalogue's" }
hours_per_year = { type = "DOUBLE", default = -1.0, meaning = "hours that a bought chip is powered in a year; negative for the catalogue's" }
pue = { type = "DOUBLE", default = -1.0, meaning = "power usage effectiveness of data centres; negative for the catalogue's" }
usd_per_kwh = { type = "DOUBLE", default = -1.0, meaning = "price of electricity; negative for the catalogue's" }
host_share = { type = "DOUBLE", default = -1.0, meaning = "what a host adds to the cost of a bought chip, as a share of it; negative for the catalogue's" }
region = { type = "VARCHAR", default = "", meaning = "grid of grid_regions; empty for the world's" }
gco2_per_kwh = { type = "DOUBLE", default = -1.0, meaning = "grams of CO2 per kWh in place of the region's; negative for the region's" }
price_of = { type = "VARCHAR[]", default = [], meaning = "whose prices are given in place of the catalogue's: a hardware and cloud or purchase, as l4:cloud" }
price_usd = { type = "DOUBLE[]", default = [], meaning = "of each: USD per hour, or USD" }
[columns]
hardware_a = { type = "VARCHAR", meaning = "option A, with @MODE where the power mode is not the default" }
precision_a = { type = "VARCHAR", meaning = "its precision" }
batch_a = { type = "INTEGER", meaning = "its batch" }
way_a = { type = "VARCHAR", meaning = "cloud or purchase" }
fixed_a_usd = { type = "DOUBLE", unit = "USD", meaning = "paid before the first inference: the purchase price with the host's, 0 in a cloud" }
variable_a_usd_per_million = { type = "DOUBLE", unit = "USD", meaning = "of each further million: rent, or electricity with the host's" }
inferences_per_life_a = { type = "DOUBLE", null = true, meaning = "what one bought chip can do in its lifetime; null in a cloud" }
hardware_b = { type = "VARCHAR", meaning = "option B" }
precision_b = { type = "VARCHAR", meaning = "its precision" }
batch_b = { type = "INTEGER", meaning = "its batch" }
way_b = { type = "VARCHAR", meaning = "cloud or purchase" }
fixed_b_usd = { type = "DOUBLE", unit = "USD", meaning = "paid before the first inference" }
variable_b_usd_per_million = { type = "DOUBLE", unit = "USD", meaning = "of each further million" }
inferences_per_life_b = { type = "DOUBLE", null = true, meaning = "what one bought chip can do in its lifetime; null in a cloud" }
break_even_inferences = { type = "DOUBLE", null = true, meaning = "where both have cost the same; null where one is cheaper at any volume, or both are alike" }
cheaper_below = { type = "VARCHAR", null = true, meaning = "A or B, the cheaper one up to there or at any volume; null where both are alike" }
cheaper_above = { type = "VARCHAR", null = true, meaning = "A or B, the cheaper one from there on" }
is_within_life = { type = "BOOLEAN", null = true, meaning = "whether one bought chip of each option reaches it; null without one" }
break_even_years = { type = "DOUBLE", null = true, unit = "year", meaning = "that the slower bought chip needs to reach it; null without one" }
run_a = { type = "INTEGER", meaning = "run of A" }
run_b = { type = "INTEGER", meaning = "run of B" }
*/
WITH paid AS MATERIALIZED (
    SELECT
        c.hardware AS id,
        c.configured_hardware AS hardware,
        c.precision,
        c.batch,
        w.way,
        CASE WHEN w.way = 'purchase' THEN (1e0 + c.host_share_ratio) * c.price_purchase_usd ELSE 0e0 END
            AS fixed_usd,
        CASE
            WHEN w.way = 'purchase' THEN (1e0 + c.host_share_ratio) * c.energy_usd_per_million
            ELSE c.cloud_usd_per_million
        END AS variable_usd_per_million,
        CASE WHEN w.way = 'purchase' THEN c.inferences_per_life END AS inferences_per_life,
        CASE WHEN w.way = 'purchase' THEN c.inferences_per_year END AS inferences_per_year,
        c.is_projection,
        c.is_available,
        c.run_id,
        row_number() OVER (
            ORDER BY
                CASE
                    WHEN w.way = 'purchase' THEN c.bought_usd_per_million
                    ELSE c.cloud_usd_per_million
                END,
                c.configured_hardware,
                c.precision,
                c.batch,
                c.runtime,
                w.way,
                c.run_id
        ) AS place
    FROM configuration_costs(
        $run_ids,
        $utilization,
        $lifetime_years,
        $hours_per_year,
        $pue,
        $usd_per_kwh,
        $region,
        $gco2_per_kwh,
        host_share := $host_share,
        price_of := $price_of,
        price_usd := $price_usd
    ) AS c
    JOIN (VALUES ('cloud'), ('purchase')) AS w (way)
        ON CASE w.way
            WHEN 'cloud' THEN c.cloud_usd_per_million IS NOT NULL
            ELSE c.purchase_usd_per_million IS NOT NULL
        END
    WHERE c.refusal IS NULL
),
a AS (
    SELECT
        hardware,
        precision,
        batch,
        way,
        fixed_usd,
        variable_usd_per_million,
        inferences_per_life,
        inferences_per_year,
        run_id
    FROM paid
    WHERE ($hardware_a = '' OR id = $hardware_a OR hardware = $hardware_a)
        AND way = CASE WHEN $way_a <> '' THEN $way_a WHEN $hardware_a = '' THEN 'purchase' ELSE way END
    ORDER BY $hardware_a = '' AND NOT is_available, $hardware_a = '' AND is_projection, place
    LIMIT 1
),
b AS (
    SELECT
        hardware,
        precision,
        batch,
        way,
        fixed_usd,
        variable_usd_per_million,
        inferences_per_life,
        inferences_per_year,
        run_id
    FROM paid
    WHERE ($hardware_b = '' OR id = $hardware_b OR hardware = $hardware_b)
        AND way = CASE WHEN $way_b <> '' THEN $way_b WHEN $hardware_b = '' THEN 'cloud' ELSE way END
    ORDER BY $hardware_b = '' AND NOT is_available, $hardware_b = '' AND is_projection, place
    LIMIT 1
),
pair AS (
    SELECT
        a AS one,
        b AS other,
        a.fixed_usd - b.fixed_usd AS fixed_gap,
        b.variable_usd_per_million - a.variable_usd_per_million AS variable_gap,
        CASE
            WHEN sign(a.fixed_usd - b.fixed_usd) * sign(b.variable_usd_per_million - a.variable_usd_per_million) > 0
                THEN (a.fixed_usd - b.fixed_usd) / (b.variable_usd_per_million - a.variable_usd_per_million) * 1e6
        END AS break_even_inferences
    FROM a
    CROSS JOIN b
)
SELECT
    one.hardware AS hardware_a,
    one.precision AS precision_a,
    one.batch AS batch_a,
    one.way AS way_a,
    one.fixed_usd AS fixed_a_usd,
    one.variable_usd_per_million AS variable_a_usd_per_million,
    one.inferences_per_life AS inferences_per_life_a,
    other.hardware AS hardware_b,
    other.precision AS precision_b,
    other.batch AS batch_b,
    other.way AS way_b,
    other.fixed_usd AS fixed_b_usd,
    other.variable_usd_per_million AS variable_b_usd_per_million,
    other.inferences_per_life AS inferences_per_life_b,
    break_even_inferences,
    CASE
        WHEN fixed_gap < 0e0 THEN 'A'
        WHEN fixed_gap > 0e0 THEN 'B'
        WHEN variable_gap > 0e0 THEN 'A'
        WHEN variable_gap < 0e0 THEN 'B'
    END AS cheaper_below,
    CASE WHEN break_even_inferences IS NULL THEN NULL WHEN fixed_gap < 0e0 THEN 'B' ELSE 'A' END AS cheaper_above,
    break_even_inferences <= least(one.inferences_per_life, other.inferences_per_life) AS is_within_life,
    break_even_inferences / least(one.inferences_per_year, other.inferences_per_year) AS break_even_years,
    one.run_id AS run_a,
    other.run_id AS run_b
FROM pair
ORDER BY run_a
