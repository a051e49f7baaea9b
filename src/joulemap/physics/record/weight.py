"""Storage formats of weights that are narrower than activations: codes, and scales shared by groups.

    bytes of K weights that one output sums = K x bits / 8 + ceil(K / group) x bytes of a group / outputs that share it

Only GEMM weights are stored this way: tensors of two or more dimensions, read by an operator that multiplies and
accumulates. Norms, biases and lookup tables keep the precision of activations, as in weight-only quantizers. So do
weights that would not be narrower with the scales of their groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, cast

import attrs

from joulemap.physics.record.configuration import PRECISION_BYTES, Precision, name_precision
from joulemap.system.errors import UsageError
from joulemap.system.name import find_nearest, fold_into
from joulemap.system.record import frozen

GROUP_SIZE: Final = 128
"""Number of weights that share a scale by default, along the dimension that a GEMM sums over.

Source: the groups of GPTQ (Frantar et al., arXiv 2210.17323) and AWQ (Lin et al., arXiv 2306.00978), and torchao's
default for int4.
"""

SCALE_BYTES: Final = 2.0
"""Bytes of a scale by default: 16 bits. Source: as for `GROUP_SIZE`."""

NARROW_GROUPS: Final[Mapping[str, tuple[int, float]]] = {"fp4": (16, 1.0), "fp8": (0, 4.0)}
"""Precision -> (group size, bytes of a scale) if they differ from `GROUP_SIZE` and `SCALE_BYTES`. Source: NVFP4, 16
values with one FP8 scale; FP8 of compressed-tensors and vLLM, an fp32 scale per output.
"""

OPERATIONS: Final = 2.0
"""Elementwise operations to dequantize a weight: convert it, and multiply by its scale."""

PARTED: Final = "/"
"""Separator of activation and weight precision in one word: `bf16/int4`."""

GROUPED: Final = ":"
"""Separator of weight precision and group size: `int4:64`."""

GGUF: Final = "gguf_"
"""Prefix of a llama.cpp file type, as in `gguf_q4_k_m`."""

BESIDE: Final = "+"
"""Separator of two formats: of experts, then of all other GEMM weights, as in `mxfp4+q8_0`."""

_BITS: Final = re.compile(r"(\d{1,2}(?:\.\d{1,4})?)bits?")
"""Pattern of a format that states only the mean bits per weight, scales included: `4.64bit`."""

_INTEGERS: Final = re.compile(r"(awq|gptq|tinygemm|uint|int)([2-8])?(?::([1-9]\d{0,5}|row))?")
"""Pattern of a format with integer codes: method, bits and group size, as in `awq:64`, `gptq8`, `uint4:32`,
`int8:row`.
"""

_BLOCKS: Final = re.compile(r"fp8:([1-9]\d{0,5})x([1-9]\d{0,5})")
"""Pattern of an FP8 format with one scale per block of rows x columns: `fp8:64x128`."""

METHODS: Final[Mapping[str, str]] = {
    "awq": "awq",
    "gptq": "gptq",
    "nf4": "bitsandbytes",
    "tinygemm": "torchao",
}
"""Start of a format's name -> quantization method that stores checkpoints in this format."""

GGUF_METHOD: Final = "gguf"
"""Name of the quantization method of llama.cpp's formats."""

UNPACKED_BITS: Final = (4.0, 8.0)
"""Bits of the integer codes that kernels of inference engines unpack in registers. Source: vLLM, `marlin_utils.py` and
`machete_utils.py`.
"""

WHOLE_ROW: Final = "row"
"""Group size of a format with one scale per output."""


@frozen(kw_only=True)
class WeightFormat:
    """Storage format of weights: their codes, and the scales that groups of weights share."""

    name: str
    """Canonical name: `int4`, `int4:64`, `q4_k_m`."""
    bits: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Bits of one weight's code."""
    group_size: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Number of weights of one output that share a scale; 0 if all of them do."""
    row_count: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Number of adjacent outputs that share a scale."""
    scale_bytes: float = 0.0
    """Bytes per group in addition to its codes: scales, and minima or zero points."""
    has_offset: bool = False
    """True if a group has a minimum or zero point besides its scale."""
    precision: str = ""
    """Precision at which a GEMM computes with the codes directly; empty if kernels always dequantize them."""
    others: WeightFormat | None = None
    """Format of GEMM weights outside experts; None if experts have the same format."""
    is_whole: bool = False
    """True if the weights of logits and routers have this format too; most quantizers keep them at 16 bits."""

    @property
    def item_bytes(self) -> float:
        """Bytes of the code of one weight, without scales."""
        return self.bits / 8.0

    @property
    def width_bytes(self) -> float:
        """Mean bytes of one weight, including its part of the group's scale. It assumes many weights per output."""
        shared = self.scale_bytes / (self.group_size * self.row_count) if self.group_size else 0.0
        return self.item_bytes + shared

    @property
    def method(self) -> str:
        """Quantization method that stores checkpoints in this format; empty for a plain format such as `int4`."""
        if self.others:
            return self.others.method
        if self.name in FILES or (self.name in FORMATS and self.is_whole):
            return GGUF_METHOD
        return next((method for start, method in METHODS.items() if self.name.startswith(start)), "")

    def is_kind(self, name: str) -> bool:
        """Return whether a bare precision, such as fp4 or int4, is the kind of this format's codes."""
        if name.startswith("int"):
            return name == f"int{self.bits:g}" and _INTEGERS.fullmatch(self.name) is not None
        return bool(name) and name == self.precision

    @property
    def is_packed(self) -> bool:
        """True for integer codes that the kernels of inference engines unpack in registers."""
        return self.bits in UNPACKED_BITS and self.name.startswith(("awq", "gptq", "int", "uint"))

    @property
    def operations(self) -> float:
        """Number of elementwise operations to dequantize one weight."""
        return OPERATIONS + self.has_offset - (self.bits >= 16.0)

    def row_bytes(self, count: int) -> float:
        """Return the bytes of `count` weights of one output, with their part of the scales."""
        groups = -(-count // self.group_size) if self.group_size else 1
        return count * self.item_bytes + groups * self.scale_bytes / self.row_count

    def describe(self) -> str:
        """Describe the format in words, with its bytes per weight."""
        if self.others:
            experts = attrs.evolve(self, name=self.name.partition(BESIDE)[0], others=None)
            return f"{experts.describe()}, of experts; {self.others.describe()}, of all else"
        width = f"{self.width_bytes:.4g} B per weight"
        if not self.scale_bytes:
            return f"{self.name}, {width}"
        group = f"groups of {self.group_size}" if self.group_size else "one group for each output"
        if self.row_count > 1:
            group = f"blocks of {self.row_count} x {self.group_size}"
        what = f"a scale of {self.scale_bytes * 8.0:.0f} bits"
        if self.has_offset:
            what = f"scale and offset in {self.scale_bytes * 8.0:.0f} bits"
        return f"{self.name} in {group} with {what}, {width}"


FORMATS: Final[Mapping[str, tuple[float, int, int, float, bool, str]]] = {
    "fp8_block": (8, 128, 128, 4.0, False, "fp8"),
    "mxfp8": (8, 32, 1, 1.0, False, "fp8"),
    "mxfp4": (4, 32, 1, 1.0, False, "fp4"),
    "nvfp4": (4, 16, 1, 1.0, False, "fp4"),
    "fp8_tensor": (8, 0, 1, 0.0, False, "fp8"),
    "mxfp6": (6, 32, 1, 1.0, False, ""),
    "nf4": (4, 64, 1, 4.0, False, ""),
    "nf4_double": (4, 64, 1, 1.0 + 4.0 / 256.0, False, ""),
    "awq": (4, GROUP_SIZE, 1, 2.5, True, ""),
    "gptq": (4, GROUP_SIZE, 1, 2.5, True, ""),
    "q2_k": (2, 256, 1, 20.0, True, ""),
    "q3_k": (3, 256, 1, 14.0, False, ""),
    "q4_0": (4, 32, 1, 2.0, False, ""),
    "q4_1": (4, 32, 1, 4.0, True, ""),
    "q4_k": (4, 256, 1, 16.0, True, ""),
    "q5_0": (5, 32, 1, 2.0, False, ""),
    "q5_1": (5, 32, 1, 4.0, True, ""),
    "q5_k": (5, 256, 1, 16.0, True, ""),
    "q6_k": (6, 256, 1, 18.0, False, ""),
    "q8_0": (8, 32, 1, 2.0, False, "int8"),
    "iq4_nl": (4, 32, 1, 2.0, False, ""),
}
"""Named formats of a matrix: bits, group size, outputs per group, bytes besides codes, presence of an offset, and
precision of GEMMs on unconverted codes.

Source: DeepSeek-V3's `weight_block_size` of 128 x 128 with fp32 scales; OCP Microscaling Formats 1.0, 32 values with a
scale of 8 bits; NVFP4, 16 with one of FP8; bitsandbytes, NF4 in blocks of 64 with an fp32 scale, or under double
quantization one of 8 bits, 256 of which share an fp32 scale; a scale of a whole matrix counts as no bytes; `qweight`,
`qzeros` and `scales` of GPTQ and AWQ, 4 bits, 4 and 16 for each group; llama.cpp (commit 01243c587f), ggml-common.h,
the size of each `block_`.
"""

FILES: Final[Mapping[str, float]] = {
    "iq1_s": 2.0042,
    "iq1_m": 2.1460,
    "iq2_xxs": 2.3824,
    "iq2_xs": 2.5882,
    "iq2_s": 2.7403,
    "iq2_m": 2.9294,
    "iq3_xxs": 3.2548,
    "iq3_xs": 3.4977,
    "iq3_s": 3.6606,
    "iq3_m": 3.7628,
    "iq4_xs": 4.4597,
    "q2_k_s": 2.9697,
    "gguf_q2_k": 3.1593,
    "q3_k_s": 3.6429,
    "q3_k_m": 3.996,
    "q3_k_l": 4.2979,
    "q3_k_xl": 4.27,
    "q4_k_s": 4.6672,
    "q4_k_m": 4.8944,
    "q4_k_xl": 4.93,
    "q5_k_s": 5.5704,
    "q5_k_m": 5.7036,
    "q5_k_xl": 6.02,
    "q6_k_xl": 7.02,
    "q8_k_xl": 9.1,
}
"""File type of llama.cpp with mixed formats -> mean bits per weight.

Source: llama.cpp (commit 311c2c9f0e), tools/quantize/README.md, of Llama-3.1-8B; q3_k_m follows from the formats that
llama-quantize gives its matrices; `_xl`, Unsloth's, by the sizes of files of Qwen3-30B-A3B, gemma-3-27b, dots.llm1,
gemma-4-31B, Qwen3.5-122B, Hunyuan-A13B and GLM-4.7-Flash (lhl/strix-halo-testing, kyuz0/amd-strix-halo-toolboxes): 4.64
to 5.27 bits, one of 6.02, one of 7.02, 8.9 to 9.4; q3_k_xl recalled, of Qwen3.6-27B.
"""

ALIASES: Final[Mapping[str, str]] = {
    "fp8:128x128": "fp8_block",
    "int4_g128": "int4",
    "gguf_f16": "fp16",
    "gguf_f32": "fp32",
    "gguf_mxfp4": "mxfp4+q8_0",
    "mxfp4_moe": "mxfp4+q8_0",
    "q2_k_m": "gguf_q2_k",
    "q4_0_4_4": "q4_0",
    "q4_0_4_8": "q4_0",
    "q4_0_8_8": "q4_0",
    "gguf_q3_k": "q3_k_m",
    "gguf_q4_k": "q4_k_m",
    "gguf_q5_k": "q5_k_m",
}
"""Alias -> canonical name. llama-quantize treats the type Q4_K as Q4_K_M, and a file of type Q2_K calls itself `Q2_K
- Medium`. Q4_0_4_4 and its like are Q4_0 in another order. A file of type MXFP4 stores only experts in MXFP4 and the
rest in Q8_0 (llama.cpp, llama-quant.cpp, LLAMA_FTYPE_MOSTLY_MXFP4_MOE; recalled).
"""

STORED: Final = ("int4", *FORMATS)
"""Storage formats of `experts` weights that differ from the precision of the GEMM."""

WEIGHT_FORMATS: Final[tuple[str, ...]] = (*PRECISION_BYTES, *FORMATS, *FILES)
"""Names of all weight formats."""


@cache
def read_weight_format(text: str) -> WeightFormat:
    """Parse a weight format, e.g. `int4`, `int4:64`, `q4_k_m`, `4.64bit` or `mxfp4+q8_0`.

    Raises UsageError for any other text.
    """
    asked = fold_into(text.strip().lower(), (*ALIASES, *FORMATS, *FILES))
    plain = ALIASES.get(asked, ALIASES.get(asked.removeprefix(GGUF), asked))
    if BESIDE in plain:
        experts, others = (read_weight_format(part) for part in plain.split(BESIDE, 1))
        if others.others:
            raise UsageError(
                f"weight precision {text!r}: write the precision of experts and that of other weights, e.g. mxfp4+q8_0"
            )
        return attrs.evolve(experts, name=f"{experts.name}{BESIDE}{others.name}", others=others, is_whole=True)
    if plain not in FILES:
        plain = fold_into(plain.removeprefix(GGUF), (*FORMATS, *FILES))
    if plain in FORMATS:
        bits, group_size, row_count, scale_bytes, has_offset, precision = FORMATS[plain]
        return WeightFormat(
            name=plain,
            bits=bits,
            group_size=group_size,
            row_count=row_count,
            scale_bytes=scale_bytes,
            has_offset=has_offset,
            precision=precision,
            is_whole=plain.removeprefix("i").startswith("q"),  # block formats of llama.cpp
        )
    if plain in FILES:
        return WeightFormat(name=plain, bits=FILES[plain], has_offset=True, is_whole=True)
    if (width := _BITS.fullmatch(plain)) and float(width[1]) > 0.0:
        return WeightFormat(name=f"{float(width[1]):g}bit", bits=float(width[1]), is_whole=True)
    name, colon, written = plain.partition(GROUPED)
    if own := _read_integers(plain) or _read_blocks(plain):
        return own
    precision = name_precision(name.strip())
    if precision not in PRECISION_BYTES:
        if name in FORMATS:
            raise UsageError(f"weight precision {text!r}: groups of {name} are part of the format; write {name}")
        nearest = find_nearest(name, [(known,) for known in WEIGHT_FORMATS])
        meant = f"; did you mean {nearest[0]}?" if nearest else ""
        known = ", ".join((*PRECISION_BYTES, *FORMATS))
        raise UsageError(
            f"unknown weight precision {name!r}{meant}; known: {known}, a llama.cpp file type such as q4_k_m, or bits "
            "per weight such as 4.5bit"
        )
    return _read_grouped(text, precision, written.strip() if colon else None)


def _read_integers(text: str) -> WeightFormat | None:
    """Parse the name of an integer format with groups, such as `awq:64`; None for any other name.

    Scales have 16 bits. AWQ, GPTQ and `uint` add a zero point of the code's width, tinygemm one of 16 bits. Source:
    `qweight`, `qzeros` and `scales` of AutoAWQ and GPTQModel; torchao, `int4_weight_only`.
    """
    written = _INTEGERS.fullmatch(text)
    if written is None:
        return None
    method, digit, group = written.groups()
    is_usual = method == "int" and group != WHOLE_ROW and f"int{digit}" in PRECISION_BYTES
    if is_usual or (digit is None and method in ("int", "uint")):
        return None
    bits = int(digit or 4)
    size = 0 if group == WHOLE_ROW else int(group or GROUP_SIZE)
    zero_bytes = {"int": 0.0, "tinygemm": SCALE_BYTES}.get(method, bits / 8.0)
    shown = "" if bits == 4 and method not in ("int", "uint") else str(bits)
    name = f"{method}{shown}" + ("" if size == GROUP_SIZE else f"{GROUPED}{size or WHOLE_ROW}")
    precision = f"int{bits}" if method == "int" and f"int{bits}" in PRECISION_BYTES else ""
    return WeightFormat(
        name=name,
        bits=bits,
        group_size=size,
        scale_bytes=SCALE_BYTES + zero_bytes,
        has_offset=method != "int",
        precision=precision,
    )


def _read_blocks(text: str) -> WeightFormat | None:
    """Parse the name of an FP8 format whose blocks share an fp32 scale, such as `fp8:64x128`; None for any other
    name.
    """
    written = _BLOCKS.fullmatch(text)
    if written is None:
        return None
    rows, columns = int(written[1]), int(written[2])
    return WeightFormat(name=text, bits=8, group_size=columns, row_count=rows, scale_bytes=4.0, precision="fp8")


def _read_grouped(text: str, precision: str, written: str | None) -> WeightFormat:
    """Return the format of weights at a precision. `written` is the group size in the name; None means the default.

    Raises UsageError for an invalid group size; `text` is the whole name for the message.
    """
    width = PRECISION_BYTES[precision]
    is_wide = width >= PRECISION_BYTES["bf16"]
    usual, scale_bytes = (0, 0.0) if is_wide else NARROW_GROUPS.get(precision, (GROUP_SIZE, SCALE_BYTES))
    group_size = usual
    if written is not None:
        if is_wide or not written.isdecimal() or int(written) < 1:
            fault = f"{precision} has no groups" if is_wide else f"write the size of its groups as {precision}:64"
            raise UsageError(f"weight precision {text!r}: {fault}")
        group_size = int(written)
        scale_bytes = scale_bytes if usual else SCALE_BYTES
    name = precision if group_size == usual else f"{precision}{GROUPED}{group_size}"
    return WeightFormat(
        name=name, bits=8.0 * width, group_size=group_size, scale_bytes=scale_bytes, precision=precision
    )


def name_weight_precision(text: str) -> str:
    """Return the canonical name of a weight format; raises UsageError like `read_weight_format`."""
    return read_weight_format(text).name


def find_weight_format(precision: str, weight_precision: str) -> WeightFormat | None:
    """Return the weight format of a run at a precision; None if weights are stored like activations.

    A format of the run's precision with scales is also returned. Raises UsageError for weights that are wider than
    activations, or as wide in another precision.
    """
    if weight_precision in ("", precision):
        return None
    weight_format = read_weight_format(weight_precision)
    if weight_format.name == precision:
        return None
    if weight_format.precision != precision and weight_format.item_bytes >= PRECISION_BYTES[precision]:
        narrower = [name for name, width in PRECISION_BYTES.items() if width < PRECISION_BYTES[precision]]
        raise UsageError(
            f"weights at {weight_format.name} are no narrower than activations at {precision}; "
            + (f"narrower are {', '.join(narrower)}" if narrower else "nothing is narrower")
        )
    return weight_format


def label_precision(precision: str, weight_precision: str) -> str:
    """Return both precisions in one word: `bf16`, or `bf16/int4` if they differ."""
    return precision if weight_precision == precision else f"{precision}{PARTED}{weight_precision}"


def split_precision(label: str) -> tuple[str, str]:
    """Split a displayed precision into (activations, weights); the second is empty if both are equal."""
    precision, _, weights = label.partition(PARTED)
    return precision, weights


def spell_precision(label: str) -> list[str]:
    """Return the command-line options for a displayed precision."""
    precision, weights = split_precision(label)
    return ["--precision", precision, *(["--weight-precision", weights] if weights else [])]


def keep_narrower(precision: str, weight_precisions: Iterable[str]) -> tuple[str, ...]:
    """Return the weight precisions that are possible in a run at a precision: equal to it or narrower."""
    width = PRECISION_BYTES[precision]
    return tuple(
        name
        for name in weight_precisions
        if (stored := read_weight_format(name)).precision == precision or stored.item_bytes < width
    )


def pair_precisions(
    precisions: tuple[Precision, ...], weight_precisions: tuple[str, ...]
) -> tuple[tuple[Precision, str], ...]:
    """Return (precision of activations, precision of weights) in every combination; both are equal if no weights are
    given.

    Raises UsageError like `find_weight_format`.
    """
    pairs: dict[tuple[Precision, str], None] = {}
    for precision in precisions:
        for asked in weight_precisions or (precision,):
            weights = find_weight_format(precision, asked)
            pairs[precision, cast("str", precision) if weights is None else weights.name] = None
    return tuple(pairs)
