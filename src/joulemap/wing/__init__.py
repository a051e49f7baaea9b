"""Built-in wings: capabilities next to the core, each a package that `system/wing.py` finds; the core imports none."""
