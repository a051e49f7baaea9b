"""Hardware that is yet to be chosen: what is varied of a chip, what moves with it, and which designs are best."""
