/*
record = "HardwarePrice"
summary = "What the hardware of runs costs at the kind of seller that is compared, with who asks it and when"
grain = "one row per hardware version and way of paying that has a price"
order = ["hardware_id", "hardware_digest", "way"]
[columns]
hardware_digest = {}
hardware_id = {}
way = {}
usd = {}
half_width = {}
basis = {}
kind = {}
seller = {}
told = {}
is_alike = {}
compared_kind = {}
price_source = {}
price_note = {}
*/
SELECT {columns}
FROM cube.price(
    run_ids := $run_ids, seller := $seller, price_of := $price_of, price_usd := $price_usd, price_source := $price_source
) AS p
ORDER BY p.hardware_id, p.hardware_digest, p.way
