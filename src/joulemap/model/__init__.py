"""Runs: workload x hardware x configuration, with a ledger. Columns, kernels, traffic, classes, one pipeline.

Symbols of the formulas in this room, of an operator unless said otherwise:

    MACs, EW, SF    mac_count, elementwise_count, special_count, whole batch
    M, N, K, G      GEMM view: G independent products of M x K by K x N
    O, taps         output elements; window size
    in, w, out      bytes that cross the kernel's boundary: activations read, weights read, results written
    R, share        in + w; R over what the operator would read as a kernel of its own: what comes from outside
    p               bytes of an element at the precision
    U, f            units that have the precision; the clock that its peak is quoted at
    ⌈x⌉             x rounded up

A name with underscores is a coefficient or a geometry of the hardware, whose value has a source in the catalogue. Time
of memory and the host's part of a launch are those of `traffic` and `placement` where a class states no other.
"""
