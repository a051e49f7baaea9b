-- How long a program that runs operator by operator holds a buffer, which may be longer than it is read.

ALTER TABLE workload_buffer ADD COLUMN release_index INTEGER;
UPDATE workload_buffer SET release_index = death_index;
COMMENT ON COLUMN workload_buffer.release_index IS
    'Last operator during which a program that runs operator by operator holds it; death_index where traced before schema 4';
