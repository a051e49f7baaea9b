"""Single operators as workloads: their names, and their records in closed form."""
