"""Weights that are stored narrower than activations: what moves, what is kept, what making them wide costs."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.bulk import Together
from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.record.weight import (
    find_weight_format,
    keep_narrower,
    label_precision,
    pair_precisions,
    read_weight_format,
    spell_precision,
)
from joulemap.physics.run import RunColumns
from joulemap.physics.width import Widths
from joulemap.physics.workload import WorkloadColumns
from joulemap.system.errors import UnsupportedError, UsageError
from models import columns


class Decoder(nn.Module):
    """Looks up in a table, norms, and multiplies twice: by a wide matrix, and by the table if it is tied."""

    def __init__(self, *, is_tied: bool = False) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 256)
        self.norm = nn.LayerNorm(256)
        self.up = nn.Linear(256, 512)
        self.down = nn.Linear(512, 256, bias=False)
        self.head = nn.Linear(256, 1000, bias=False)
        if is_tied:
            self.head.weight = self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.norm(self.table(ids))
        out: Tensor = self.head(x + self.down(self.up(x)))
        return out


def decoder(*, is_tied: bool = False, token_count: int = 1) -> WorkloadColumns:
    return columns(Decoder(is_tied=is_tied), torch.zeros(1, token_count, dtype=torch.int64, device="meta"))


MATRICES = 256 * 512 + 512 * 256
HEAD = 256 * 1000
REST = 512 + 2 * 256
"""Bias, and scale and shift of the norm."""


def test_a_format_has_a_width_and_scales() -> None:
    usual = read_weight_format("INT4")
    assert (usual.name, usual.group_size, usual.scale_bytes, usual.item_bytes) == ("int4", 128, 2.0, 0.5)
    assert read_weight_format("int4:64").name == "int4:64"
    assert read_weight_format("int4:128").name == "int4"
    assert read_weight_format("float8").precision == "fp8"
    assert (read_weight_format("fp4").group_size, read_weight_format("fp4").scale_bytes) == (16, 1.0)
    assert "0.5156 B per weight" in usual.describe()


def test_a_format_names_the_method_that_made_it() -> None:
    """Kernels unpack integer codes of 4 and 8 bits; `int4` is a plain format, whatever made it."""
    names = ("awq", "awq:64", "gptq8:32", "gptq3", "nf4_double", "q4_k_m", "gguf_mxfp4", "int4:64", "mxfp4", "int8:row")
    formats = [read_weight_format(name) for name in names]
    methods = ["awq", "awq", "gptq", "gptq", "bitsandbytes", "gguf", "gguf", "", "", ""]
    assert [one.method for one in formats] == methods
    assert [one.is_packed for one in formats] == [True, True, True, False, False, False, False, True, False, True]


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("mxfp4", 4 + 8 / 32),
        ("nvfp4", 4 + 8 / 16),
        ("fp8_block", 8 + 32 / 128**2),
        ("fp8:128x128", 8 + 32 / 128**2),
        ("awq", 4 + (16 + 4) / 128),
        ("q2_k", 2.625),
        ("Q3-K", 3.4375),
        ("q4_0", 4.5),
        ("q4_k", 4.5),
        ("q5_k", 5.5),
        ("q6_k", 6.5625),
        ("gguf_q8_0", 8.5),
        ("gguf_q4_k", 4.8944),
        ("gguf_q2_k", 3.1593),
        ("gguf_q2_k_m", 3.1593),
        ("gguf_q4_0_4_4", 4.5),
        ("gguf_bf16", 16),
        ("gguf_f16", 16),
        ("4.64bit", 4.64),
    ],
)
def test_formats_have_the_bits_of_their_definition(text: str, bits: float) -> None:
    found = read_weight_format(text)
    assert_close(8 * found.width_bytes, bits)
    assert_close(found.row_bytes(1024), 128 * bits)
    assert read_weight_format(found.name) == found


@pytest.mark.wings
def test_experts_are_stored_apart_from_all_else() -> None:
    from joulemap.wing.decoder.network.decoder_pass import DecoderPass
    from joulemap.wing.decoder.network.pass_name import find_decoder
    from joulemap.wing.llm.serving.deployment import PassWorkloads

    def describe_step(name: str) -> Together:
        model = find_decoder(name)
        assert model is not None
        return PassWorkloads(model).describe([(DecoderPass(tokens=1), 1)])

    found = read_weight_format("gguf_mxfp4")
    assert found.name == "mxfp4+q8_0" and read_weight_format(found.name) == found
    assert "of experts" in found.describe()
    asked = describe_step("gpt-oss-20b")

    def weigh(name: str) -> float:
        return asked.sizes("bf16", "graph", weight_precision=name)[0][0]

    # 24 layers of 32 experts: gate and up of 2880 x 5760, down of 2880 x 2880; biases stay wide
    experts = 24 * 32 * (2880 * 5760 + 2880 * 2880)
    wide, narrow = weigh(""), weigh("mxfp4+bf16")
    assert_close(wide - narrow, experts * (2 - 4.25 / 8))
    # queries of 64 heads, keys and values of 8 each, of 64; what they give; the router; the head of 201,088
    others = 24 * (2880 * 64 * (64 + 8 + 8) + 64 * 64 * 2880 + 2880 * 32) + 201_088 * 2880
    assert_close(narrow - weigh("mxfp4+q8_0"), others * (2 - 8.5 / 8))
    # of a model without experts it is what all else is stored at
    dense = describe_step("llama-3-8b")
    kinds = ("mxfp4+q8_0", "q8_0")
    first, second = (dense.sizes("bf16", "graph", weight_precision=kind)[0][0] for kind in kinds)
    assert first == second


def test_what_products_take_as_it_is_differs_by_its_scales() -> None:
    work = decoder()
    scales = (512 * 2 + 256 * 4 + 1000 * 2) * 4 / 128
    assert Widths(work, "fp8", "fp8_block").weight_bytes == Widths(work, "fp8").weight_bytes + scales
    assert not form_kernels(work, "fp8", "engine", "fp8_block").dequantization_count.any()
    assert form_kernels(work, "bf16", "engine", "fp8_block").dequantization_count.any()
    assert pair_precisions(("fp8", "bf16"), ("fp8_block", "fp8")) == (
        ("fp8", "fp8_block"),
        ("fp8", "fp8"),
        ("bf16", "fp8_block"),
        ("bf16", "fp8"),
    )
    # a whole row of outputs shares one scale of four bytes
    rows = (512 + 256 + 1000) * 4
    assert Widths(work, "bf16", "fp8").weight_bytes == (REST + 256 * 1000) * 2 + MATRICES + HEAD + rows


def test_wide_weights_have_no_scales_and_are_converted() -> None:
    work = decoder()
    assert Widths(work, "fp32", "bf16").weight_bytes == (REST + 256 * 1000) * 4 + (MATRICES + HEAD) * 2
    assert form_kernels(work, "fp32", "fused", "bf16").dequantization_count.sum() == MATRICES + HEAD
    # convert, scale, and add a minimum
    assert form_kernels(work, "fp32", "fused", "q4_k").dequantization_count.sum() == 3 * (MATRICES + HEAD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int9", "unknown weight precision 'int9'; did you mean int.*; known: fp64"),
        ("q4_km_m", "did you mean q4_k_m"),
        ("0bit", "unknown weight precision"),
        ("bf16:64", "bf16 has no groups"),
        ("mxfp4:64", "groups of mxfp4 are part of the format; write mxfp4"),
        ("mxfp4+q8_0+q4_0", "the precision of experts and that of other weights"),
        ("int4:", "write the size of its groups as int4:64"),
        ("int4:0", "write the size of its groups as int4:64"),
        ("int4:many", "write the size of its groups as int4:64"),
    ],
)
def test_what_is_no_format_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_weight_format(text)


def test_weights_that_are_no_narrower_are_refused() -> None:
    for precision, weights in (("bf16", "fp32"), ("bf16", "fp16"), ("int8", "bf16"), ("int8", "fp8"), ("int4", "int8")):
        with pytest.raises(UsageError, match=f"weights at {weights} are no narrower than activations at {precision}"):
            find_weight_format(precision, weights)
    assert find_weight_format("bf16", "") is find_weight_format("bf16", "bf16") is None
    assert keep_narrower("int8", ("int4", "int8", "bf16", "fp8")) == ("int4", "int8")


def test_pairs_of_precisions_are_told_in_a_word() -> None:
    assert pair_precisions(("bf16",), ()) == (("bf16", "bf16"),)
    pairs = pair_precisions(("bf16", "int8"), ("int8", "int4:64"))
    assert pairs == (("bf16", "int8"), ("bf16", "int4:64"), ("int8", "int8"), ("int8", "int4:64"))
    assert [label_precision(*pair) for pair in pairs] == ["bf16/int8", "bf16/int4:64", "int8", "int8/int4:64"]
    assert spell_precision("bf16/int4:64") == ["--precision", "bf16", "--weight-precision", "int4:64"]
    assert spell_precision("bf16") == ["--precision", "bf16"]
    assert Settings(precision="fp16", weight_precision="INT4:128").precisions == (("fp16", "int4"),)


def test_matrices_of_products_are_stored_at_their_width_with_scales() -> None:
    work = decoder()
    wide = (REST + 256 * 1000) * 2
    # a row of 256 has two groups of 128, one of 512 four; a scale is two bytes
    scales = (512 * 2 + 256 * 4 + 1000 * 2) * 2
    assert Widths(work, "bf16").weight_bytes == wide + (MATRICES + HEAD) * 2
    assert Widths(work, "bf16", "bf16").weight_bytes == Widths(work, "bf16").weight_bytes
    assert Widths(work, "bf16", "int4").weight_bytes == wide + (MATRICES + HEAD) // 2 + scales
    assert Widths(work, "bf16", "int8").weight_bytes == wide + MATRICES + HEAD + scales
    assert Widths(work, "bf16", "int4:64").weight_bytes == wide + (MATRICES + HEAD) // 2 + 2 * scales
    # 16 values share a scale of one byte
    assert Widths(work, "bf16", "fp4").weight_bytes == wide + (MATRICES + HEAD) * (0.5 + 1 / 16)
    # a group that is longer than the sum is as long as it
    assert Widths(work, "bf16", "int4:4096").weight_bytes == wide + (MATRICES + HEAD) // 2 + (512 + 256 + 1000) * 2


def test_a_table_that_a_product_reads_too_is_stored_once() -> None:
    work = decoder(is_tied=True)
    scales = (512 * 2 + 256 * 4 + 1000 * 2) * 2
    assert Widths(work, "bf16", "int4").weight_bytes == REST * 2 + (MATRICES + HEAD) // 2 + scales


@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
def test_they_move_as_they_are_stored(runtime: str) -> None:
    kernels = form_kernels(decoder(), "bf16", runtime, "int4")
    plain = form_kernels(decoder(), "bf16", runtime)
    products = kernels.work.of_kind("linear")
    counts = np.array([256 * 512, 512 * 256, 256 * 1000], dtype=np.float64)
    stored = counts / 2 + np.array([512 * 2, 256 * 4, 1000 * 2]) * 2 + np.array([512 * 2, 0, 0])
    assert kernels.weight_bytes[products].tolist() == stored.tolist()
    assert kernels.weight_bytes[~products].tolist() == plain.weight_bytes[~products].tolist()
    for name in ("input_bytes", "output_bytes", "own_read_bytes", "own_weight_bytes", "peak_activation_bytes"):
        assert np.array_equal(getattr(kernels, name), getattr(plain, name)), name
    # converted and multiplied by a scale, each once
    assert kernels.dequantization_count[products].tolist() == (2 * counts).tolist()
    added = kernels.work.elementwise_count - plain.work.elementwise_count
    assert added.tolist() == kernels.dequantization_count.tolist()


def test_what_a_group_makes_no_narrower_keeps_its_width() -> None:
    work = columns(nn.Conv2d(16, 16, 1, groups=16, bias=False), torch.empty(1, 16, 4, 4, device="meta"))
    # one weight of half a byte with a scale of two is wider than a weight of two
    assert Widths(work, "bf16", "int4").weight_bytes == 16 * 2
    assert not form_kernels(work, "bf16", "fused", "int4").dequantization_count.any()


def run(
    work: WorkloadColumns, hardware: Hardware, precision: str, weights: str = "", runtime: str = "fused"
) -> RunColumns:
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime, weight_precision=weights)
    return Evaluator(work).evaluate(hardware, configuration)


def chip(name: str) -> Hardware:
    return load_catalogue().find(name)


def test_making_weights_wide_is_energy_to_the_last_operation() -> None:
    work, h100 = decoder(), chip("h100_sxm5")
    plain, narrow = run(work, h100, "bf16"), run(work, h100, "bf16", "int4")
    position = h100.reference.position(("cuda_core", "elementwise"))
    counts = [one.ledger.action_count[one.ledger.action_index == position].sum() for one in (narrow, plain)]
    assert counts[0] - counts[1] == 2 * (MATRICES + HEAD)
    assert narrow.weight_bytes == Widths(work, "bf16", "int4").weight_bytes
    assert narrow.mac_count == plain.mac_count
    assert narrow.peak_ops_per_s == plain.peak_ops_per_s


def test_a_model_fits_where_its_weights_do() -> None:
    hardware = chip("l4")
    small = attrs.evolve(hardware.memory_capacity, value=100e6)
    hardware = attrs.evolve(hardware, memory_capacity=small)
    work = columns(nn.Linear(8192, 8192, bias=False, device="meta"), torch.empty(1, 8192, device="meta"))
    with pytest.raises(UnsupportedError, match="this configuration needs"):
        run(work, hardware, "bf16")
    assert run(work, hardware, "bf16", "int4").weight_bytes == 8192 * 8192 // 2 + 8192 * 64 * 2
