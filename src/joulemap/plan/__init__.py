"""Planning of runs: from settings to stored runs, which are found, or traced, evaluated and written."""
