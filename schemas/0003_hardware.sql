-- Everything of a hardware record is in the database, so that runs are evaluated without reading the catalogue's files.

ALTER TABLE hardware_version ADD COLUMN power_mode VARCHAR DEFAULT 'default';
ALTER TABLE hardware_version ADD COLUMN aliases VARCHAR[] DEFAULT [];
ALTER TABLE hardware_version ADD COLUMN doubts VARCHAR[] DEFAULT [];
COMMENT ON COLUMN hardware_version.power_mode IS 'Operating point that the numbers are of';
COMMENT ON COLUMN hardware_version.aliases IS 'Other names that it is asked for by';
COMMENT ON COLUMN hardware_version.doubts IS 'What the sources disagree about';

ALTER TABLE hardware_precision ADD COLUMN operations_per_clock DOUBLE;
ALTER TABLE hardware_precision ADD COLUMN engine VARCHAR DEFAULT '';
ALTER TABLE hardware_precision ADD COLUMN explanation VARCHAR DEFAULT '';
COMMENT ON COLUMN hardware_precision.operations_per_clock IS 'Of one unit';
COMMENT ON COLUMN hardware_precision.engine IS 'Component that gives the peak where a unit has several, e.g. tensor_core; empty if unknown';
COMMENT ON COLUMN hardware_precision.explanation IS 'Why units x operations per clock x clock is not the peak, where it is not';

ALTER TABLE energy_per_action ADD COLUMN action_index INTEGER;
COMMENT ON COLUMN energy_per_action.action_index IS 'Order in the description';

CREATE TABLE hardware_level (
    hardware_digest VARCHAR NOT NULL,
    level_index INTEGER NOT NULL CHECK (level_index >= 0),
    level VARCHAR NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('cache', 'scratchpad')),
    per VARCHAR NOT NULL
);
COMMENT ON TABLE hardware_level IS 'On-chip memory levels; capacity and bandwidth are hardware_fact memory.LEVEL.capacity and .bandwidth';
COMMENT ON COLUMN hardware_level.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN hardware_level.level_index IS 'Nearest to the units first';
COMMENT ON COLUMN hardware_level.level IS 'Name, e.g. l2';
COMMENT ON COLUMN hardware_level.kind IS 'A cache keeps what was used last, a scratchpad what the program put there';
COMMENT ON COLUMN hardware_level.per IS 'What one instance belongs to';

CREATE TABLE hardware_power_mode (
    hardware_digest VARCHAR NOT NULL,
    mode_index INTEGER NOT NULL CHECK (mode_index >= 0),
    power_mode VARCHAR NOT NULL
);
COMMENT ON TABLE hardware_power_mode IS 'Named operating points; their numbers are hardware_fact power_mode.NAME.clock, .tdp ...';
COMMENT ON COLUMN hardware_power_mode.hardware_digest IS 'hardware_version';
COMMENT ON COLUMN hardware_power_mode.mode_index IS 'Order in the description';
COMMENT ON COLUMN hardware_power_mode.power_mode IS 'Name, e.g. 15W';

-- How people see a configuration's hardware: jetson_orin_nano_8gb@15W, or the id alone at the default operating point.
CREATE MACRO configuration_name(hardware, power_mode) AS
    CASE WHEN power_mode = 'default' THEN hardware ELSE hardware || '@' || power_mode END;
