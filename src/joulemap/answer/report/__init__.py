"""A report: what the other questions answer about models on several hardware, put together for one page."""
