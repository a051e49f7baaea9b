"""Reports: answers with their figures as one file that a browser opens without a network."""
