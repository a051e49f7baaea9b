/*
record = "Grade"
summary = "Grades of a share of a peak, with their thresholds"
grain = "one row per grade"
[parameters]
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "minimum shares of excellent, good, fair and poor; empty for the program's own" }
[columns]
grade_index = { type = "BIGINT", meaning = "position from 1, best first" }
grade = { type = "VARCHAR", meaning = "excellent, good, fair, poor or very poor" }
least_fraction = { type = "DOUBLE", meaning = "share of the peak from which this grade applies, unless a better one does" }
*/
SELECT
    g.grade_index,
    grades()[g.grade_index] AS grade,
    coalesce(grade_bounds($grade_bounds)[g.grade_index], 0e0) AS least_fraction
FROM (SELECT unnest(generate_series(1, len(grades()))) AS grade_index) AS g
ORDER BY g.grade_index
