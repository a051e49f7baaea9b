/*
record = "Grade"
summary = "Grades of a share of a peak, with their thresholds"
grain = "one row per grade"
[parameters]
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "minimum shares of excellent, good, fair and poor; empty for the defaults" }
[columns]
grade_index = { type = "BIGINT", meaning = "position from 1, best first" }
grade = { type = "VARCHAR", meaning = "excellent, good, fair, poor or very poor" }
least_fraction = { type = "DOUBLE", meaning = "minimum share of the peak for this grade" }
*/
WITH bound AS (
    SELECT
        CASE len($grade_bounds)
            WHEN 0 THEN [0.7e0, 0.5e0, 0.3e0, 0.1e0]
            WHEN 4 THEN $grade_bounds
            ELSE error('expected four bounds of grades, from excellent down to poor, found ' || len($grade_bounds))
        END AS fractions
)
SELECT
    g.grade_index,
    ['excellent', 'good', 'fair', 'poor', 'very poor'][g.grade_index] AS grade,
    coalesce(b.fractions[g.grade_index], 0e0) AS least_fraction
FROM bound AS b
CROSS JOIN (SELECT unnest(generate_series(1, 5)) AS grade_index) AS g
ORDER BY grade_index
