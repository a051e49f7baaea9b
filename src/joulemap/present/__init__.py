"""Documents to table, json, csv, markdown and html. No SQL, and no arithmetic that a query could do."""
