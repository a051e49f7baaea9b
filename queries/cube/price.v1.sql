/*
summary = "Prices of the hardware of runs, each at its cheapest kind of seller on demand, or at the requested kind"
grain = "one row per hardware version and way of paying that has a price"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs whose hardware is priced" }
price_of = { type = "VARCHAR[]", default = [], meaning = "hardware and way of paying of each given price, as l4:rented" }
price_usd = { type = "DOUBLE[]", default = [], meaning = "each given price: in USD per hour if rented, in USD if bought" }
price_source = { type = "VARCHAR[]", default = [], meaning = "source of each price" }
[columns]
hardware_digest = { type = "VARCHAR", meaning = "version of the hardware" }
hardware_id = { type = "VARCHAR", meaning = "catalogue id, without a power mode" }
way = { type = "VARCHAR", meaning = "rented or bought" }
usd = { type = "DOUBLE", unit = "USD", meaning = "price of one device, per hour where it is rented: the median over sellers" }
half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the price's logarithm, over sellers; 0 for a given price" }
basis = { type = "VARCHAR", meaning = "basis of the price; `given` for a price of the question" }
kind = { type = "VARCHAR", meaning = "kind of seller; empty for a given price and for one of the hardware's own description" }
seller = { type = "VARCHAR", meaning = "group of prices with a common error: the only seller, or the kind of seller and the hardware if several sell it" }
price_text = { type = "VARCHAR", meaning = "seller and date of the price" }
is_alike = { type = "BOOLEAN", meaning = "true if the price is compared: from the requested kind of seller or of no kind, and without a request from any kind but reserved and spot" }
compared_kind = { type = "VARCHAR", meaning = "kind of seller whose prices alone are compared; empty if each chip has the price of its cheapest kind" }
price_source = { type = "VARCHAR", meaning = "documents, or the file or question that gives the price" }
price_note = { type = "VARCHAR", meaning = "notes on the price, such as what it includes; per seller if several have offers" }
*/
WITH version AS (
    SELECT
        v.hardware_digest,
        v.hardware AS hardware_id,
        v.vendor,
        v.unavailable = '' AS is_available,
        coalesce(first(m.hardware), v.hardware) AS priced_id,
        first(f.value) AS own_usd,
        first(f.basis) AS own_basis,
        first(f.source) AS own_source,
        first(f.note) AS own_note,
        w.way,
        coalesce(list_position(CAST($price_of AS VARCHAR[]), v.hardware || ':' || w.way), 0) AS given_index
    FROM internal.hardware_version AS v
    CROSS JOIN (VALUES ('rented', 'price_cloud'), ('bought', 'price_purchase')) AS w (way, quantity)
    -- A part of a module or SoC costs what the whole does (`is_part` in domain/host.py), unless it has its own price.
    LEFT JOIN internal.hardware_fact AS o ON o.hardware_digest = v.hardware_digest AND o.quantity = w.quantity
    LEFT JOIN hardware AS m
        ON m.hardware = v.whole AND o.value IS NULL
    LEFT JOIN internal.hardware_fact AS f
        ON f.hardware_digest = coalesce(m.hardware_digest, v.hardware_digest) AND f.quantity = w.quantity
    WHERE v.hardware_digest IN (SELECT r.hardware_digest FROM internal.run AS r WHERE r.run_id IN (SELECT unnest($run_ids)))
    GROUP BY v.hardware_digest, v.hardware, v.vendor, v.unavailable, w.way
),
-- offers replace a price from the catalogue, but not the user's own price
offered AS (
    SELECT
        v.hardware_digest,
        v.hardware_id,
        v.way,
        v.is_available,
        CASE WHEN v.given_index > 0 THEN CAST($price_usd AS DOUBLE[])[v.given_index] ELSE coalesce(s.usd, v.own_usd) END AS usd,
        CASE WHEN v.given_index > 0 THEN 0e0 ELSE coalesce(s.half_width, find_price_half_width(v.own_basis)) END AS half_width,
        CASE WHEN v.given_index > 0 THEN 'given' ELSE coalesce(s.basis, v.own_basis) END AS basis,
        coalesce(s.kind, '') AS kind,
        coalesce(s.kind_index, 0) AS kind_index,
        coalesce(s.seller, CASE v.way WHEN 'bought' THEN v.vendor ELSE v.own_source END, '') AS seller,
        CASE WHEN v.given_index > 0 THEN 'given' ELSE coalesce(s.price_text, '') END AS price_text,
        CASE
            WHEN v.given_index > 0 THEN coalesce(CAST($price_source AS VARCHAR[])[v.given_index], '')
            ELSE coalesce(s.source, v.own_source)
        END AS price_source,
        CASE WHEN v.given_index > 0 THEN '' ELSE coalesce(s.note, v.own_note) END AS price_note
    FROM version AS v
    LEFT JOIN internal.seller_price AS s
        ON v.given_index = 0 AND s.hardware = v.priced_id AND s.way = v.way AND s.reference_usd = v.own_usd
    WHERE v.given_index > 0 OR v.own_usd IS NOT NULL
),
-- Which price is compared does not depend on the other hardware. Reserved and spot prices need a commitment or may be
-- interrupted, so they are compared only if asked for (`SPECIAL_KINDS` in domain/offer.py).
compared AS (
    SELECT
        o.*,
        a.kind AS compared_kind,
        CASE WHEN a.kind <> '' THEN o.kind IN ('', a.kind) ELSE o.kind NOT IN ('reserved', 'spot') END AS is_alike
    FROM offered AS o
    CROSS JOIN LATERAL (
        SELECT
            CASE
                WHEN o.way = CASE WHEN $seller IN ('list', 'retail') THEN 'bought' ELSE 'rented' END THEN $seller ELSE ''
            END AS kind
    ) AS a
)
SELECT
    o.hardware_digest,
    o.hardware_id,
    o.way,
    o.usd,
    o.half_width,
    o.basis,
    o.kind,
    o.seller,
    o.price_text,
    o.is_alike,
    o.compared_kind,
    o.price_source,
    o.price_note
FROM compared AS o
QUALIFY row_number() OVER (
    PARTITION BY o.hardware_digest, o.way
    ORDER BY o.is_alike DESC, o.usd, o.kind_index, o.kind
) = 1
ORDER BY o.hardware_id, o.hardware_digest, o.way
