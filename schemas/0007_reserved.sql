-- Number of another piece of this release.
SELECT 1;
