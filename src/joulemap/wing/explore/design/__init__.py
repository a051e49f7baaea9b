"""Search for chip designs: varied constants, dependent constants, and the best designs."""
