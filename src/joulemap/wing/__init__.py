"""Built-in wings: capabilities outside the core, each a package that `system/wing.py` finds; the core imports none."""
