"""Reports: answers and figures in one HTML file that a browser opens without a network."""
