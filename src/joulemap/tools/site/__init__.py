"""The documentation as a site (`make docs`): pages laid out in a build folder, and drawn there.

Nothing is written into the tree. What pages lack on disk is added on the way: a reference of the commands and of the
library, made from the code, and figures, made from answers of today.
"""
