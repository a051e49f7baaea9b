"""Documents to table, json, csv and markdown. No SQL, and no arithmetic that a query could do."""
