"""Planning of runs: settings become a list of runs, which are found in the database or evaluated and stored."""
