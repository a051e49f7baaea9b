"""What is asked to the runs that answer it: find them, or trace, evaluate and write what is missing."""
