/*
record = "Grade"
summary = "The grades of a share of a peak, and where each begins"
grain = "one row per grade"
[parameters]
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "least shares that are excellent, good, fair and poor; empty for the program's own" }
[columns]
grade_index = { type = "BIGINT", meaning = "from 1, the best first" }
grade = { type = "VARCHAR", meaning = "excellent, good, fair, poor or very poor" }
least_fraction = { type = "DOUBLE", meaning = "of the peak: what is as much or more has this grade, unless it has a better one" }
*/
SELECT
    g.grade_index,
    grades()[g.grade_index] AS grade,
    coalesce(grade_bounds($grade_bounds)[g.grade_index], 0e0) AS least_fraction
FROM (SELECT unnest(generate_series(1, len(grades()))) AS grade_index) AS g
ORDER BY g.grade_index
