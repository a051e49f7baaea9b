-- Which part of a unit gives a peak: the precisions of one chip may run on different engines.

ALTER TABLE hardware_precision ADD COLUMN engine VARCHAR DEFAULT '';
COMMENT ON COLUMN hardware_precision.engine IS 'Component that gives the peak where a unit has several, e.g. tensor_core; empty if unknown';
