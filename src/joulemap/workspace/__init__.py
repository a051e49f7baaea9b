"""A database and how to answer from it: find the stored workload or trace, evaluate what is missing, write, query."""
