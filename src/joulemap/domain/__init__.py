"""Records of everything that has a name: frozen, no behaviour beyond their own invariants and derived properties."""
