"""Questions about designs of a chip, about one chip for many models, and about the files of a lake."""
