"""Wings that ship: capabilities beside the core, each a package that `system/wing.py` finds; the core imports none."""
