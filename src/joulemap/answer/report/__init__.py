"""Report on models and several chips: the answers of other questions on one page."""
