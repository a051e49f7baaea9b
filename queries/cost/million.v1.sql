/*
record = "CostOption"
summary = "Cost of a million inferences, rented or bought, with energy and carbon"
grain = "one row per requested run and way of paying; one with way none where no price is known or the run was refused"
order = ["status: ok, no price, unsupported", "the way that is asked for first", "the kind of seller that is ranked first", "usd_per_million", "kwh_per_million", "hardware", "precision", "batch", "runtime", "way", "run_id"]
[parameters]
price_source = { type = "VARCHAR[]", default = [], meaning = "source of each price" }
takes_all = { type = "BOOLEAN", default = false, meaning = "true to rank unavailable hardware too" }
[columns]
rank = { type = "BIGINT", null = true, meaning = "rank, 1 for the cheapest in the requested way of paying; null in the other way, without a price, for another kind of seller, and for unavailable hardware unless all hardware is unavailable or takes_all is true" }
status = { type = "VARCHAR", meaning = "status: ok, no price or unsupported" }
is_best_of_hardware = { heading = "confidence", type = "BOOLEAN", meaning = "true for the cheapest run of its hardware in the requested way of paying, in any power mode; without a price, the one with the least energy" }
way = { heading = "payment", type = "VARCHAR", meaning = "way of paying: rented (by the hour), bought (price and electricity) or none" }
usd_per_million = { heading = "cost", type = "DOUBLE", null = true, unit = "USD", meaning = "total cost of a million inferences" }
usd_half_width = { heading = "cost range", type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of usd_per_million, from throughput and price" }
probability_cheapest = { type = "DOUBLE", null = true, meaning = "probability that this option is the cheapest of the ranked options; null beyond the 40 cheapest" }
probability_cheaper = { type = "DOUBLE", null = true, meaning = "probability that this option is cheaper than the first; null for the first, and where probability_cheapest is" }
likely_cheapest = { type = "BOOLEAN", meaning = "true if this option is predicted to be the cheapest, or is statistically tied with the cheapest" }
hardware_usd_per_million = { heading = "hardware cost", type = "DOUBLE", null = true, unit = "USD", meaning = "rental price, or purchase price spread over the lifetime" }
energy_usd_per_million = { heading = "energy cost", type = "DOUBLE", null = true, unit = "USD", meaning = "electricity of the chip; 0 in a cloud, where the rental price includes it" }
host_usd_per_million = { heading = "host cost", type = "DOUBLE", null = true, unit = "USD", meaning = "host of a bought chip, with its electricity; 0 in a cloud, where the rental price includes it" }
price = { shown = "in price_unit", type = "DOUBLE", null = true, meaning = "price of the chip, board or kit, in price_unit" }
price_unit = { type = "VARCHAR", null = true, meaning = "USD/h or USD" }
price_basis = { heading = "basis", type = "VARCHAR", null = true, meaning = "basis of the price; `given` for a price of the question" }
price_half_width = { heading = "uncertainty", shown = "±", type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the logarithm of price, over sellers; 0 for a given price" }
price_text = { heading = "seller", type = "VARCHAR", null = true, meaning = "seller and date of the price; `given` for a price of the question" }
seller_kind = { type = "VARCHAR", null = true, meaning = "kind of seller; empty for a given price and for one of the hardware's own description" }
compared_kind = { type = "VARCHAR", null = true, meaning = "kind of seller that is ranked in this way of paying" }
is_alike = { type = "BOOLEAN", meaning = "true if its price is of the ranked kind of seller, or of no kind" }
price_source = { heading = "source", type = "VARCHAR", null = true, meaning = "document, or the file or question that gives the price" }
price_note = { heading = "product", type = "VARCHAR", null = true, meaning = "notes on the price, such as what it includes; per seller if several have offers" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second while it works" }
energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of one inference while it works, of the chip alone" }
is_available = { type = "BOOLEAN", meaning = "true if the hardware is available in this way of paying, at a known or given price; without a price, in any way" }
reason = { type = "VARCHAR", meaning = "reason for a missing cost; empty otherwise" }
kwh_per_million = { heading = "energy" }
gco2_per_million = { heading = "CO2" }
*/
WITH price AS MATERIALIZED (
    FROM cube.price(
        run_ids := $run_ids, price_of := $price_of, price_usd := $price_usd, price_source := $price_source, seller := $seller
    )
),
paid AS (
    SELECT
        c.hardware_id AS id,
        c.hardware,
        c.architecture,
        c.precision,
        c.batch,
        c.runtime,
        c.pay,
        w.way,
        by_way(w.way, c.rented_usd_per_million, c.bought_usd_per_million) AS usd_per_million,
        by_way(w.way, c.rented_half_width, c.bought_half_width) AS price_half_width,
        by_way(w.way, c.rented_seller, c.bought_seller) AS seller,
        by_way(w.way, c.rented_usd_per_million, c.purchase_usd_per_million) AS hardware_usd_per_million,
        by_way(w.way, 0e0, c.energy_usd_per_million) AS energy_usd_per_million,
        by_way(w.way, 0e0, c.host_usd_per_million) AS host_usd_per_million,
        by_way(w.way, c.price_cloud_usd_per_hour, c.price_purchase_usd) AS price,
        by_way(w.way, 'USD/h', 'USD') AS price_unit,
        by_way(w.way, c.rented_basis, c.bought_basis) AS price_basis,
        f.half_width AS seller_half_width,
        f.price_text,
        f.kind AS seller_kind,
        f.compared_kind,
        coalesce(f.is_alike, TRUE) AS is_alike,
        f.price_source,
        f.price_note,
        c.throughput_per_s,
        c.throughput_limit,
        c.latency_s,
        c.energy_per_inference_j,
        c.kwh_per_million,
        c.gco2_per_million,
        c.inferences_per_year,
        c.inferences_per_life,
        c.idle_power_w,
        c.idle_quantity,
        c.pue_ratio,
        c.host_share_ratio,
        coalesce(f.basis, '') = 'given' OR c.is_available AND coalesce(f.basis, '') <> 'assumed' AS is_available,
        c.reason,
        CASE WHEN c.reason <> '' THEN 3 WHEN w.way = 'none' THEN 2 ELSE 1 END AS position,
        w.way IN (c.pay, 'none') OR c.pay = 'both' AS is_asked,
        coalesce(c.price_cloud_usd_per_hour, c.price_purchase_usd) IS NOT NULL AS has_price,
        c.run_id
    FROM cube.cost(
        run_ids := $run_ids, utilization := $utilization, lifetime_years := $lifetime_years, hours_per_year := $hours_per_year, pue := $pue, usd_per_kwh := $usd_per_kwh, host_share := $host_share, region := $region, seller := $seller,
        gco2_per_kwh := $gco2_per_kwh, price_of := $price_of, price_usd := $price_usd, pay := $pay
    ) AS c
    JOIN (VALUES ('rented'), ('bought'), ('none')) AS w (way)
        ON CASE w.way
            WHEN 'rented' THEN c.reason = '' AND c.rented_usd_per_million IS NOT NULL
            WHEN 'bought' THEN c.reason = '' AND c.bought_usd_per_million IS NOT NULL
            ELSE c.reason <> '' OR coalesce(c.rented_usd_per_million, c.bought_usd_per_million) IS NULL
        END
    LEFT JOIN price AS f ON f.hardware_digest = c.hardware_digest AND f.way = w.way
),
ranked AS (
    SELECT
        p.*,
        row_number() OVER (
            ORDER BY
                position, NOT is_asked, NOT is_alike, usd_per_million NULLS LAST, kwh_per_million NULLS LAST, hardware, precision, batch,
                runtime, way, run_id
        ) AS ordinal,
        row_number() OVER (
            PARTITION BY id
            ORDER BY
                position, NOT is_asked, NOT is_alike, usd_per_million NULLS LAST, kwh_per_million NULLS LAST, hardware, precision, batch,
                runtime, way, run_id
        ) AS place_of_hardware,
        position = 1 AND is_asked AND is_alike AND (
            $takes_all
            OR is_available
            OR NOT coalesce(bool_or(is_available) FILTER (position = 1 AND is_asked AND is_alike) OVER (), FALSE)
        ) AS is_ranked
    FROM paid AS p
),
placed AS (
    SELECT
        r.*,
        row_number() OVER (PARTITION BY r.is_ranked ORDER BY r.ordinal) AS rank,
        r.id || ':' || r.way AS price_key
    FROM ranked AS r
),
contender AS (
    SELECT
        'cost' AS question,
        'cost' AS metric,
        rank AS row_id,
        run_id,
        ln(usd_per_million) AS cost,
        price_half_width,
        price_key,
        seller
    FROM placed
    WHERE is_ranked AND usd_per_million > 0e0 AND rank <= 40
),
standing AS (FROM numpy.standing_among(contender))
SELECT
    CASE WHEN r.is_ranked THEN r.rank END AS rank,
    ['ok', 'no price', 'unsupported'][position] AS status,
    pay,
    position < 3 AND place_of_hardware = 1 AS is_best_of_hardware,
    hardware, architecture, "precision", batch, runtime, way, usd_per_million,
    sqrt(pow(metric_half_width('cost', t), 2) + pow(r.price_half_width, 2))
        AS usd_half_width,
    h.probability_best AS probability_cheapest,
    h.probability_ahead AS probability_cheaper,
    coalesce(h.is_likely_best, FALSE) AS likely_cheapest,
    hardware_usd_per_million, energy_usd_per_million, host_usd_per_million, price, price_unit, price_basis,
    r.seller_half_width AS price_half_width,
    price_text, seller_kind, compared_kind, is_alike, price_source, price_note, throughput_per_s, throughput_limit,
    latency_s, energy_per_inference_j, kwh_per_million, gco2_per_million, inferences_per_year, inferences_per_life,
    idle_power_w, idle_quantity, pue_ratio, host_share_ratio, is_available,
    CASE
        WHEN position = 3 THEN r.reason
        WHEN position = 2 AND has_price THEN 'the database has no assumptions of use: ask `joulemap cost` once'
        WHEN position = 2 THEN 'the catalogue has no ' || find_metric('cost').missing
        ELSE ''
    END AS reason,
    r.run_id
FROM placed AS r
LEFT JOIN standing AS h ON h.row_id = CASE WHEN r.is_ranked THEN r.rank END
LEFT JOIN internal.run_total AS t ON t.run_id = CASE WHEN r.position = 1 THEN r.run_id END
ORDER BY r.ordinal
