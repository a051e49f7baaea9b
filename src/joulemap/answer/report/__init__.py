"""Report on models and several hardware: the answers of other questions on one page."""
