"""Words and tables of pipelines."""
