/*
record = "ArchitectureCategory"
summary = "Energy of the run and of one MAC by common category, with the categories that are architectural overhead"
grain = "one row per evaluated run and common category, communication and host only if any run has them; the rows of a run sum to its energy, exactly"
order = ["position in run_ids", "run_id", "category_index"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one model, one of each architecture" }
[columns]
category_index = { type = "BIGINT", meaning = "position of the common category from the arithmetic outwards: compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, communication (where any run has it), control, board, unattributed, host (where any run has it), static" }
common_category = { heading = "category", type = "VARCHAR", meaning = "common category" }
is_overhead = { heading = "overhead", type = "BOOLEAN", meaning = "true for architectural overhead: neither arithmetic, off-chip memory, board, unattributed, host nor static" }
categories = { heading = "categories of the class", type = "VARCHAR", meaning = "the architecture's own categories of these actions, most energy first; empty without an action" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy per batch, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy per batch" }
energy_fraction = { heading = "share", type = "DOUBLE", null = true, meaning = "share of the energy" }
energy_per_mac_j = { heading = "energy per MAC" }
kind_count = { heading = "actions" }
*/
WITH kind (category_index, common_category) AS (
    VALUES
        (1, 'compute'), (2, 'register'), (3, 'unit_memory'), (4, 'chip_memory'), (5, 'interconnect'),
        (6, 'off_chip_memory'), (7, 'communication'), (8, 'control'), (9, 'board'), (10, 'unattributed'), (11, 'host'), (12, 'static')
),
act AS MATERIALIZED (
    SELECT run_id, position, architecture, hardware, common_category, category, energy_fj, run_fj, mac_count
    FROM cube.cause(run_ids := $run_ids)
),
spent AS (
    SELECT
        run_id,
        common_category,
        string_agg(category, ', ' ORDER BY energy_fj DESC, category) AS categories,
        sum(kind_count) AS kind_count,
        sum(energy_fj) AS energy_fj
    FROM (
        SELECT run_id, common_category, category, count(*) AS kind_count, sum(energy_fj) AS energy_fj
        FROM act
        GROUP BY run_id, common_category, category
    )
    GROUP BY run_id, common_category
)
SELECT
    r.architecture,
    r.hardware,
    CAST(k.category_index AS BIGINT) AS category_index,
    k.common_category,
    is_overhead(k.common_category) AS is_overhead,
    coalesce(s.categories, '') AS categories,
    CAST(coalesce(s.kind_count, 0) AS BIGINT) AS kind_count,
    coalesce(s.energy_fj, 0) AS energy_fj,
    joules(coalesce(s.energy_fj, 0)) AS energy_j,
    joules(coalesce(s.energy_fj, 0)) / r.mac_count AS energy_per_mac_j,
    fraction(coalesce(s.energy_fj, 0), r.run_fj) AS energy_fraction,
    r.run_id
FROM (SELECT DISTINCT run_id, position, architecture, hardware, run_fj, mac_count FROM act) AS r
CROSS JOIN kind AS k
LEFT JOIN spent AS s ON s.run_id = r.run_id AND s.common_category = k.common_category
WHERE k.common_category NOT IN ('communication', 'host') OR k.common_category IN (SELECT common_category FROM spent)
ORDER BY r.position, r.run_id, k.category_index
