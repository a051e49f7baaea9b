/*
summary = "Cost, energy and emissions of a million inferences of each run, as computed by domain/use.py"
grain = "one row per requested run, refused ones included"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to choose from, of one model" }
gco2_per_kwh = { type = "DOUBLE", default = -1.0, meaning = "grams of CO2 per kWh in place of the region's; negative for the region's" }
price_of = { type = "VARCHAR[]", default = [], meaning = "hardware and way of paying of each given price, as l4:rented" }
price_usd = { type = "DOUBLE[]", default = [], meaning = "each given price: in USD per hour if rented, in USD if bought" }
pay = { type = "VARCHAR", default = "", meaning = "rented, bought, or both (the cheaper way for each run); empty for rented" }
[columns]
inferences_per_year = { type = "DOUBLE", null = true, meaning = "inferences per year of one chip at this utilization" }
inferences_per_life = { type = "DOUBLE", null = true, meaning = "inferences of one chip in its lifetime" }
kwh_per_million = { type = "DOUBLE", null = true, unit = "kWh", meaning = "energy of work and idling, times PUE" }
gco2_per_million = { type = "DOUBLE", null = true, unit = "g", meaning = "CO2 of a million inferences" }
rented_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million inferences, rented" }
purchase_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "part of bought_usd_per_million: purchase price spread over the lifetime" }
energy_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "part of bought_usd_per_million: electricity of the chip" }
host_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "part of bought_usd_per_million: host that the chip needs, with its electricity" }
bought_usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million inferences, bought: purchase_usd_per_million + energy_usd_per_million + host_usd_per_million" }
pay = { type = "VARCHAR", meaning = "rented, bought or both: way of paying, the same in every row" }
way = { type = "VARCHAR", null = true, meaning = "rented or bought: the way that usd_per_million pays; null without a price of the compared kind of seller" }
usd_per_million = { type = "DOUBLE", null = true, unit = "USD", meaning = "cost of a million inferences, paid for as in way" }
price_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of the price in usd_per_million; 0 for a given price" }
seller = { type = "VARCHAR", meaning = "group of prices with a common error: the source of a rent, the maker of a bought chip" }
price_text = { type = "VARCHAR", meaning = "price in usd_per_million, with seller and date; empty without a price" }
rented_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of rented_usd_per_million due to the price" }
bought_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of bought_usd_per_million due to the price, which is only a part of it" }
rented_basis = { type = "VARCHAR", null = true, meaning = "basis of the rental price; `given` for a price of the question" }
bought_basis = { type = "VARCHAR", null = true, meaning = "basis of the purchase price; `given` for a price of the question" }
rented_seller = { type = "VARCHAR", meaning = "kind of seller of the rental price" }
bought_seller = { type = "VARCHAR", meaning = "kind of seller of the purchase price" }
rent_text = { type = "VARCHAR", meaning = "seller and date of the rental price" }
purchase_text = { type = "VARCHAR", meaning = "seller and date of the purchase price" }
bought_price_half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of the purchase price" }
rented_alike = { type = "BOOLEAN", meaning = "true if the rental price is from the compared kind of seller" }
bought_alike = { type = "BOOLEAN", meaning = "true if the purchase price is from the compared kind of seller" }
unlike_price_text = { type = "VARCHAR", meaning = "price and seller in the requested way of paying if the price is of another kind of seller; empty otherwise" }
idle_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "power between inferences, at the boundary of the energies" }
idle_quantity = { type = "VARCHAR", meaning = "origin of idle_power_w: idle_power, or static_power where the catalogue has no idle_power" }
resting_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "power between requests while a model is loaded: loaded_power, assumed equal to static_power where it was not measured" }
pue_ratio = { type = "DOUBLE", meaning = "power usage effectiveness; 1 outside data centres" }
total_purchase_usd = { type = "DOUBLE", null = true, unit = "USD", meaning = "purchase price of one chip with its host: price_purchase_usd * (1 + host_share_ratio)" }
host_share_ratio = { type = "DOUBLE", null = true, meaning = "host as a share of the price and electricity of a bought chip, of the price alone where the energy contains a host; the price of a named host, null where it is unknown; 0 for a CPU, a board or a whole computer, and where energies leave out the host" }
host_energy_share_ratio = { type = "DOUBLE", meaning = "host_share_ratio as far as it applies to electricity: 0 where the energy contains a host, as at the boundary system" }
assumed_host = { type = "VARCHAR", meaning = "computer whose static power counts as the host of a USB or M.2 chip, or rest of the module or SoC of a part; empty where the host is a share, none, or in the energy" }
module_power_w = { type = "DOUBLE", unit = "W", meaning = "static power of the rest of the module or SoC that a chip is a part of; 0 for other chips, and where the energy contains that power" }
busy_fraction = { type = "DOUBLE", null = true, meaning = "share of the time in which the chip works: rate_per_s over throughput_per_s, at most 1; 1 at full speed" }
host_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "mean power of the host in addition to the chip's: static power of assumed_host while the chip works and idle power while it idles, else the chip's power * host_energy_share_ratio" }
idle_energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of the chip while it idles before the next inference, at its idle power; 0 at full speed, and for a part of a module, whose idle power is in the host's" }
host_energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of the host in addition to the chip's: host_power_w over the rate of inferences; 0 where energies are of the chip alone" }
total_energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of one inference: energy_per_inference_j + idle_energy_per_inference_j + host_energy_per_inference_j" }
total_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy of a batch including idle time and the host" }
total_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "mean power of the chip and its host: average_power_w + host_power_w at full speed" }
utilization_fraction = { type = "DOUBLE", meaning = "share of the powered or rented hours in which a chip works" }
lifetime_years = { type = "DOUBLE", unit = "year", meaning = "years that a bought chip serves" }
hours_per_year = { type = "DOUBLE", unit = "h/year", meaning = "hours per year that a bought chip is powered" }
usd_per_kwh = { type = "DOUBLE", unit = "USD/kWh", meaning = "price of electricity" }
gco2_per_kwh = { type = "DOUBLE", unit = "g/kWh", meaning = "CO2 per kWh of the grid" }
*/
WITH price AS MATERIALIZED (
    FROM cube.price(run_ids := $run_ids, price_of := $price_of, price_usd := $price_usd, seller := $seller)
),
fact AS (
    SELECT
        hardware_digest,
        max(value) FILTER (WHERE quantity = 'host_share') AS host_share_ratio,
        max(value) FILTER (WHERE quantity = 'price_purchase') AS price_purchase_usd,
        max(value) FILTER (WHERE quantity = 'idle_power') AS idle_power_w,
        max(value) FILTER (WHERE quantity = 'static_power') AS static_power_w,
        max(value) FILTER (WHERE quantity = 'loaded_power') AS loaded_power_w
    FROM internal.hardware_fact
    WHERE quantity IN ('host_share', 'price_purchase', 'idle_power', 'static_power', 'loaded_power')
    GROUP BY hardware_digest
),
-- Numbers at the wall plug that idle power needs: energy per joule of the board, and the share of a host.
surrounding AS (
    SELECT
        v.hardware_digest,
        1e0 + coalesce(joules(sum(e.energy_per_action_fj) FILTER (a.component IN ('chassis', 'psu'))), 0e0) AS wall_ratio,
        joules(sum(e.energy_per_action_fj) FILTER (a.component = 'host' AND a.action = 'static_power')) AS host_w
    FROM internal.hardware_version AS v
    JOIN internal.energy_per_action AS e ON e.hardware_digest = v.hardware_digest
    JOIN internal.action AS a ON a.action_id = e.action_id
    WHERE v.boundary = 'system'
    GROUP BY v.hardware_digest
),
powered AS MATERIALIZED (
    SELECT
        r.position, r.run_id, r.model, r.hardware, r.hardware_id, r.hardware_digest, r.label, r.architecture,
        r.precision, r.batch, r.runtime, r.energy_j, r.energy_per_inference_j, r.inferences_per_j, r.latency_s,
        r.throughput_per_s, r.throughput_limit, r.average_power_w, r.edp_js, r.edp_per_inference_js,
        r.peak_memory_bytes, r.compute_utilization_fraction,
        r.is_available AND coalesce(w.is_available OR v.whole = '', TRUE) AS is_available,
        r.status, r.reason, r.{metric},
        rent.usd AS usd_per_hour,
        buy.usd AS purchase_usd,
        rent.basis AS rented_basis,
        buy.basis AS bought_basis,
        coalesce(rent.seller, '') AS rented_seller,
        coalesce(buy.seller, v.vendor) AS bought_seller,
        coalesce(rent.half_width, 0e0) AS rented_price_half_width,
        coalesce(buy.half_width, 0e0) AS bought_price_half_width,
        coalesce(rent.price_text, '') AS rent_text,
        coalesce(buy.price_text, '') AS purchase_text,
        coalesce(rent.is_alike, TRUE) AS rented_alike,
        coalesce(buy.is_alike, TRUE) AS bought_alike,
        h.host_share,
        CASE
            WHEN v.boundary = 'system' OR (v.host <> '' AND v.needs_host <> '') THEN 0e0 ELSE h.host_share
        END AS host_energy_share,
        CASE WHEN v.host = '' AND v.boundary = 'board' THEN w.hardware END AS assumed_host,
        w.static_power_w AS assumed_host_w,
        CASE
            WHEN v.boundary <> 'board' OR v.needs_host = '' THEN 0e0
            WHEN v.host = '' THEN coalesce(wf.idle_power_w, w.static_power_w, 0e0)
            ELSE coalesce(gf.idle_power_w, gf.static_power_w, 0e0)
        END AS host_idle_w,
        -- the idle power of a part of a module or an SoC may be in that of its host: the larger of both counts once
        v.is_part AND v.boundary = 'board' AND v.host <> 'none' AND (v.host <> '' OR w.hardware IS NOT NULL)
            AS is_idle_shared,
        CASE
            WHEN v.host = '' AND v.boundary = 'board' AND v.is_part
                THEN coalesce(w.static_power_w, 0e0)
            ELSE 0e0
        END AS module_w,
        v.boundary,
        coalesce(f.idle_power_w, f.static_power_w) * coalesce(s.wall_ratio, 1e0) + coalesce(s.host_w, 0e0) AS idle_w,
        CASE WHEN f.idle_power_w IS NULL THEN 'static_power' ELSE 'idle_power' END AS idle_quantity,
        coalesce(f.loaded_power_w, f.static_power_w) * coalesce(s.wall_ratio, 1e0) + coalesce(s.host_w, 0e0) AS resting_w,
        CASE WHEN list_contains(r.deployment, 'datacenter') THEN a.pue ELSE 1e0 END AS pue,
        a.utilization,
        a.lifetime_years,
        a.hours_per_year,
        a.usd_per_kwh,
        a.gco2_per_kwh
    FROM cube.run(run_ids := $run_ids) AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    LEFT JOIN fact AS f ON f.hardware_digest = r.hardware_digest
    LEFT JOIN surrounding AS s ON s.hardware_digest = r.hardware_digest
    -- A USB stick or M.2 card has a separate host (`find_own_host` in domain/host.py), and a part has the rest of its
    -- module or SoC. Neither power is proportional to the chip's.
    LEFT JOIN hardware AS w
        ON w.hardware = v.own_host AND w.static_power_w > 0e0
    LEFT JOIN fact AS wf ON wf.hardware_digest = w.hardware_digest
    LEFT JOIN hardware AS g ON g.hardware = v.host
    LEFT JOIN fact AS gf ON gf.hardware_digest = g.hardware_digest
    LEFT JOIN price AS rent ON rent.hardware_digest = r.hardware_digest AND rent.way = 'rented'
    LEFT JOIN price AS buy ON buy.hardware_digest = r.hardware_digest AND buy.way = 'bought'
    CROSS JOIN (
        SELECT
            CASE WHEN $utilization >= 0e0 THEN $utilization ELSE max(a.value) FILTER (a.assumption = 'utilization') END AS utilization,
            CASE WHEN $lifetime_years >= 0e0 THEN $lifetime_years ELSE max(a.value) FILTER (a.assumption = 'lifetime') END AS lifetime_years,
            CASE WHEN $hours_per_year >= 0e0 THEN $hours_per_year ELSE max(a.value) FILTER (a.assumption = 'hours') END AS hours_per_year,
            CASE WHEN $pue >= 0e0 THEN $pue ELSE max(a.value) FILTER (a.assumption = 'pue') END AS pue,
            CASE WHEN $usd_per_kwh >= 0e0 THEN $usd_per_kwh ELSE max(a.value) FILTER (a.assumption = 'electricity') END AS usd_per_kwh,
            CASE WHEN $host_share >= 0e0 THEN $host_share ELSE max(a.value) FILTER (a.assumption = 'host') END AS host_share,
            CASE
                WHEN $gco2_per_kwh >= 0e0 THEN $gco2_per_kwh
                ELSE (
                    SELECT g.gco2_per_kwh
                    FROM internal.grid_region AS g
                    WHERE g.region = CASE WHEN $region = '' THEN 'world' ELSE $region END
                )
            END AS gco2_per_kwh
        FROM internal.cost_assumption AS a
    ) AS a
    -- `is_host` (domain/host.py): hardware that is a host itself has the share in its record, else none. A share in a
    -- record refers to the price there. What leaves out the host's energy leaves out its price. A named host costs its
    -- own price, with the share of its own record, or an unknown one; never an assumed share.
    CROSS JOIN LATERAL (
        SELECT
            CASE
                WHEN v.boundary = 'chip' OR v.host = 'none' THEN 0e0
                WHEN $host_share < 0e0 AND v.needs_host <> '' AND NOT v.is_part AND v.host <> ''
                    THEN coalesce(
                        list_extract(
                            CAST($price_usd AS DOUBLE[]), list_position(CAST($price_of AS VARCHAR[]), v.host || ':bought')
                        ),
                        gf.price_purchase_usd
                    ) * (1e0 + coalesce(gf.host_share_ratio, 0e0)) / buy.usd
                ELSE coalesce(
                    f.host_share_ratio * coalesce(f.price_purchase_usd / buy.usd, 1e0),
                    CASE
                        WHEN (v.needs_host = '' OR v.is_part) AND (r.architecture = 'cpu' OR NOT list_contains(r.deployment, 'datacenter')) THEN 0e0
                        ELSE a.host_share
                    END
                )
            END AS host_share
    ) AS h
),
asked AS (SELECT CASE WHEN $pay = '' THEN 'rented' ELSE $pay END AS pay)
SELECT
    s.position, s.run_id, s.model, s.hardware, s.hardware_id, s.hardware_digest, s.label, s.architecture, s.precision,
    s.batch, s.runtime, s.energy_j, s.energy_per_inference_j, s.inferences_per_j, s.latency_s, s.throughput_per_s,
    s.throughput_limit, s.average_power_w, s.edp_js, s.edp_per_inference_js, s.peak_memory_bytes,
    s.compute_utilization_fraction, s.usd_per_hour AS price_cloud_usd_per_hour, s.purchase_usd AS price_purchase_usd,
    s.purchase_usd * (1e0 + s.host_share) AS total_purchase_usd,
    s.inferences_per_year, s.inferences_per_life, s.kwh_per_million, s.gco2_per_million, s.rented_usd_per_million,
    s.purchase_usd_per_million, s.energy_usd_per_million, s.host_usd_per_million, s.bought_usd_per_million,
    s.pay,
    s.way,
    by_way(s.way, s.rented_usd_per_million, s.bought_usd_per_million) AS usd_per_million,
    coalesce(by_way(s.way, s.rented_half_width, s.bought_half_width), 0e0) AS price_half_width,
    coalesce(by_way(s.way, s.rented_seller, s.bought_seller), '') AS seller,
    coalesce(by_way(s.way, describe_rent(s.usd_per_hour, s.rent_text), describe_purchase(s.purchase_usd, s.purchase_text)), '') AS price_text,
    s.rented_half_width, s.bought_half_width, s.rented_basis, s.bought_basis, s.rented_seller, s.bought_seller,
    s.rent_text, s.purchase_text, s.rented_alike, s.bought_alike, s.bought_price_half_width,
    CASE
        WHEN s.way IS NULL AND s.pay <> 'bought' AND s.usd_per_hour IS NOT NULL AND NOT s.rented_alike
            THEN describe_rent(s.usd_per_hour, s.rent_text)
        WHEN s.way IS NULL AND s.pay <> 'rented' AND s.purchase_usd IS NOT NULL AND NOT s.bought_alike
            THEN describe_purchase(s.purchase_usd, s.purchase_text)
        ELSE ''
    END AS unlike_price_text,
    s.idle_w AS idle_power_w, s.idle_quantity, s.resting_w AS resting_power_w, s.pue AS pue_ratio, s.host_share AS host_share_ratio, s.status,
    s.is_available, s.reason, s.host_energy_share AS host_energy_share_ratio,
    coalesce(s.assumed_host, '') AS assumed_host, s.module_w AS module_power_w, s.busy_fraction, s.host_power_w,
    s.idle_energy_per_inference_j, s.host_energy_per_inference_j,
    s.energy_per_inference_j + s.idle_energy_per_inference_j + s.host_energy_per_inference_j AS total_energy_per_inference_j,
    (s.energy_per_inference_j + s.idle_energy_per_inference_j + s.host_energy_per_inference_j) * s.batch AS total_energy_j,
    s.own_power_w + s.host_power_w AS total_power_w, s.utilization AS utilization_fraction,
    s.lifetime_years, s.hours_per_year, s.usd_per_kwh, s.gco2_per_kwh, s.{metric}
FROM (
    SELECT
        p.position, p.run_id, p.model, p.hardware, p.hardware_id, p.hardware_digest, p.label, p.architecture,
        p.precision, p.batch, p.runtime, p.energy_j, p.energy_per_inference_j, p.inferences_per_j, p.latency_s,
        p.throughput_per_s, p.throughput_limit, p.average_power_w, p.edp_js, p.edp_per_inference_js,
        p.peak_memory_bytes, p.compute_utilization_fraction, p.is_available, p.status, p.reason,
        p.usd_per_hour, p.purchase_usd, p.rented_basis, p.bought_basis, p.rented_seller, p.bought_seller,
        p.rent_text, p.purchase_text, p.rented_alike, p.bought_alike,
        p.host_share, p.host_energy_share, p.assumed_host, p.module_w,
        b.busy_fraction,
        b.own_power_w,
        b.host_power_w,
        b.idle_power_w / (p.throughput_per_s * b.busy_fraction) AS idle_energy_per_inference_j,
        CASE
            WHEN p.boundary IN ('chip', 'system') THEN 0e0 ELSE b.host_power_w / (p.throughput_per_s * b.busy_fraction)
        END AS host_energy_per_inference_j,
        p.idle_w, p.idle_quantity, p.resting_w, p.pue, p.utilization, p.lifetime_years,
        p.hours_per_year, p.usd_per_kwh, p.gco2_per_kwh, p.{metric},
        y.pay,
        p.{costs},
        p.rented_price_half_width AS rented_half_width,
        coalesce(
            p.bought_price_half_width * purchase_usd_per_million / (purchase_usd_per_million + energy_usd_per_million), 0e0
        ) AS bought_half_width,
        p.bought_price_half_width,
        CASE
            WHEN y.pay <> 'bought' AND p.rented_alike AND rented_usd_per_million IS NOT NULL
                AND NOT (y.pay = 'both' AND coalesce(p.bought_alike AND bought_usd_per_million < rented_usd_per_million, FALSE))
                THEN 'rented'
            WHEN y.pay <> 'rented' AND p.bought_alike AND bought_usd_per_million IS NOT NULL THEN 'bought'
        END AS way
    FROM powered AS p
    CROSS JOIN asked AS y
    -- Idle time draws the idle power of the chip and of its host. The energy of a host that was named contains its power
    -- while the chip works.
    CROSS JOIN LATERAL (
        SELECT
            d.busy_fraction,
            d.idle_power_w,
            p.average_power_w * d.busy_fraction + d.idle_power_w AS own_power_w,
            p.host_idle_w * (1e0 - d.busy_fraction) + CASE
                WHEN p.assumed_host IS NOT NULL THEN p.assumed_host_w * d.busy_fraction
                ELSE (p.average_power_w * d.busy_fraction + d.idle_power_w) * p.host_energy_share
            END AS host_power_w
        FROM (
            SELECT
                u.busy_fraction,
                greatest(coalesce(p.idle_w, 0e0) - CASE WHEN p.is_idle_shared THEN p.host_idle_w ELSE 0e0 END, 0e0)
                    * (1e0 - u.busy_fraction) AS idle_power_w
            FROM (
                SELECT
                    CASE WHEN $rate_per_s > 0e0 THEN least($rate_per_s / p.throughput_per_s, 1e0) ELSE 1e0 END AS busy_fraction
            ) AS u
        ) AS d
    ) AS b
) AS s
ORDER BY s.position, s.run_id
