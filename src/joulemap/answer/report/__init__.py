"""Report on models and several chips: one page with the answers to several questions."""
