"""MACs of the networks of MLPerf Tiny by kind of kernel, computed by hand."""

from __future__ import annotations

KWS_STEM = 25 * 5 * 40 * 64
KWS = (KWS_STEM + 4 * 125 * 64 * 64, 4 * 125 * 9 * 64, 64 * 12)
IC = (
    1024 * 27 * 16 + 2 * 1024 * 144 * 16 + 256 * (144 * 32 + 288 * 32 + 16 * 32) + 64 * (288 * 64 + 576 * 64 + 32 * 64),
    0,
    64 * 10,
)
AD = (0, 0, 640 * 128 + 3 * 128 * 128 + 128 * 8 + 8 * 128 + 3 * 128 * 128 + 128 * 640)
VWW_PAIRS = (  # positions after the depthwise convolution, channels before and after
    (48, 8, 16), (24, 16, 32), (24, 32, 32), (12, 32, 64), (12, 64, 64), (6, 64, 128), *[(6, 128, 128)] * 5,
    (3, 128, 256), (3, 256, 256),
)  # fmt: skip
VWW = (
    48 * 48 * 27 * 8 + sum(size * size * before * after for size, before, after in VWW_PAIRS),
    sum(size * size * 9 * before for size, before, _ in VWW_PAIRS),
    256 * 2,
)
MACS = {"ad": AD, "ic": IC, "kws": KWS, "vww": VWW}
"""Network -> (dense, depthwise, linear) MACs, summed over the layers in the training scripts of the benchmark."""

PUBLISHED_MACS = {"ad": 0.26e6, "ic": 12.5e6, "kws": 2.7e6, "vww": 7.5e6}
"""Network -> rounded MACs in the literature."""
