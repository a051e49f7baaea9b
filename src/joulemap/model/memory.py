"""Peak memory that an allocator reports, beside what a run itself needs."""

from __future__ import annotations

from joulemap.domain.hardware import Hardware


def allocated_bytes(run_bytes: float, hardware: Hardware, *, stream_count: int) -> float:
    """Return the peak that torch's caching allocator reports on a GPU for a run of `run_bytes`, weights included.

        allocated = weights + activations + min(streams, stream limit) x workspace

    torch keeps one cuBLAS workspace for each stream that has run a product, until the process ends. `stream_count` is
    therefore a property of the process, not of the model: 1 where nothing but eager calls ran, 3 after the first
    captured graph (the default stream, the one that warms up, the one that captures), one more with each further graph.
    Streams come from a pool that is used in turn, so there is a limit. Raises KeyError for a hardware whose class has
    no such allocator.

    Source: aten/src/ATen/cuda/CublasHandlePool.cpp and c10/cuda/CUDAStream.cpp of PyTorch; the sizes are the
    coefficients `allocator_workspace` and `allocator_stream_limit`.
    """
    streams = min(stream_count, int(hardware.coefficient("allocator_stream_limit")))
    return run_bytes + streams * hardware.coefficient("allocator_workspace")
