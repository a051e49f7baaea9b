"""What everything stands on: files, errors, records, numbers and units, rows for other programs."""
