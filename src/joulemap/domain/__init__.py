"""Domain records: frozen, with no behaviour beyond their invariants and derived properties."""
