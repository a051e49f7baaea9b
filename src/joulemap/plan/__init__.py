"""From settings to runs: found, or traced, evaluated and written."""
