/*
record = "BreakEven"
summary = "Number of inferences from which the option with the higher initial price is cheaper"
grain = "one row; none where one of the options has no price"
order = ["the only row"]
[parameters]
hardware_a = { type = "VARCHAR", default = "", meaning = "hardware of option A, at its cheapest run; with @MODE for one power mode, empty for the cheapest available hardware" }
way_a = { type = "VARCHAR", default = "", meaning = "rented or bought; empty for the cheaper, or for bought where no hardware is named" }
hardware_b = { type = "VARCHAR", default = "", meaning = "hardware of option B, as for hardware_a" }
way_b = { type = "VARCHAR", default = "", meaning = "rented or bought; empty for the cheaper, or for rented where no hardware is named" }
[columns]
hardware_a = { type = "VARCHAR", meaning = "option A, with @MODE where the power mode is not the default" }
precision_a = { type = "VARCHAR", meaning = "precision of A" }
batch_a = { type = "INTEGER", meaning = "batch of A" }
way_a = { type = "VARCHAR", meaning = "rented or bought" }
fixed_a_usd = { type = "DOUBLE", unit = "USD", meaning = "initial cost: purchase price including the host's; 0 in a cloud" }
variable_a_usd_per_million = { type = "DOUBLE", unit = "USD", meaning = "cost of each further million inferences: rent, or electricity including the host's" }
inferences_per_life_a = { type = "DOUBLE", null = true, meaning = "inferences of one bought chip in its lifetime; null in a cloud" }
hardware_b = { type = "VARCHAR", meaning = "option B" }
precision_b = { type = "VARCHAR", meaning = "precision of B" }
batch_b = { type = "INTEGER", meaning = "batch of B" }
way_b = { type = "VARCHAR", meaning = "rented or bought" }
fixed_b_usd = { type = "DOUBLE", unit = "USD", meaning = "initial cost" }
variable_b_usd_per_million = { type = "DOUBLE", unit = "USD", meaning = "cost of each further million inferences" }
inferences_per_life_b = { type = "DOUBLE", null = true, meaning = "inferences of one bought chip in its lifetime; null in a cloud" }
break_even_inferences = { type = "DOUBLE", null = true, meaning = "number of inferences at which both cost the same; null where one is always cheaper, or both cost the same" }
cheaper_below = { type = "VARCHAR", null = true, meaning = "A or B: cheaper below that number, or always; null where both cost the same" }
cheaper_above = { type = "VARCHAR", null = true, meaning = "A or B: cheaper above that number" }
is_within_life = { type = "BOOLEAN", null = true, meaning = "true if one bought chip of each option reaches it; null without one" }
break_even_years = { type = "DOUBLE", null = true, unit = "year", meaning = "time that the slower bought chip needs to reach it; null without one" }
run_a = { type = "INTEGER", meaning = "run of A" }
run_b = { type = "INTEGER", meaning = "run of B" }
*/
WITH paid AS MATERIALIZED (
    SELECT
        c.hardware_id AS id,
        c.hardware,
        c.precision,
        c.batch,
        w.way,
        CASE WHEN w.way = 'bought' THEN (1e0 + c.host_share_ratio) * c.price_purchase_usd ELSE 0e0 END
            AS fixed_usd,
        CASE
            WHEN w.way = 'bought'
                THEN c.bought_usd_per_million - (1e0 + c.host_share_ratio) * c.purchase_usd_per_million
            ELSE c.rented_usd_per_million
        END AS variable_usd_per_million,
        CASE WHEN w.way = 'bought' THEN c.inferences_per_life END AS inferences_per_life,
        CASE WHEN w.way = 'bought' THEN c.inferences_per_year END AS inferences_per_year,
        c.is_available,
        c.run_id,
        row_number() OVER (
            ORDER BY
                CASE
                    WHEN w.way = 'bought' THEN c.bought_usd_per_million
                    ELSE c.rented_usd_per_million
                END,
                c.hardware,
                c.precision,
                c.batch,
                c.runtime,
                w.way,
                c.run_id
        ) AS ordinal
    FROM cube.cost(
        run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
        gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd
    ) AS c
    JOIN (VALUES ('rented'), ('bought')) AS w (way)
        ON CASE w.way
            WHEN 'rented' THEN c.rented_usd_per_million IS NOT NULL AND c.rented_alike
            ELSE c.purchase_usd_per_million IS NOT NULL AND c.bought_alike
        END
    WHERE c.status = 'ok'
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
        AND way = CASE WHEN $way_a <> '' THEN $way_a WHEN $hardware_a = '' THEN 'bought' ELSE way END
    ORDER BY $hardware_a = '' AND NOT is_available, ordinal
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
        AND way = CASE WHEN $way_b <> '' THEN $way_b WHEN $hardware_b = '' THEN 'rented' ELSE way END
    ORDER BY $hardware_b = '' AND NOT is_available, ordinal
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
