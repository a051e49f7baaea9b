"""Words and tables for designs of a chip, for one chip for many models, and for the files of a lake."""
