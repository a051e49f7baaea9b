"""What things are: frozen records, no behaviour beyond their own invariants and derived properties."""
