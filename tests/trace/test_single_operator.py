"""Single operators as workloads: their names, and what is counted of them against a trace and torch's own counter."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, strategies as st
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.operator.name import (
    ARGUMENTS,
    COLLECTIVES,
    ELEMENTWISE,
    EXAMPLES,
    MIXING,
    SingleOperator,
    complete,
    find_operator,
    spell,
)
from joulemap.physics.bulk import evaluate_all
from joulemap.physics.fuse import fuse
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import FLOPS_PER_MAC, Configuration
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import columns_of
from joulemap.system.errors import UsageError
from joulemap.system.name import split_names
from joulemap.trace.operator import build_operator
from joulemap.trace.single import describe
from models import Function


def find(name: str) -> SingleOperator:
    operator = find_operator(name)
    assert operator is not None
    return operator


BARE = ("rotary", "gated", "experts", "scan", *COLLECTIVES)
"""Kernels that torch has not."""

NAMES = (
    *(name for kind, name in EXAMPLES.items() if kind not in BARE),
    "rms_norm(rows=3,columns=5)",
    "embedding(rows=7,columns=5,table=3)",
    "gemm(m=1,n=7,k=5)",
    "gemm(m=197,n=768,k=3072,bias=true)",
    "bmm(b=1,m=3,n=5,k=7)",
    "conv2d(batch=3,channels_in=3,channels_out=64,size=224,kernel=7,stride=2,padding=3)",
    "conv2d(channels_in=96,channels_out=96,size=15,kernel=3,stride=2,padding=1,groups=96,bias=true)",
    "conv2d(channels_in=32,channels_out=48,size=14,kernel=1,groups=4)",
    "attention(batch=2,queries=33,heads=12,head_dim=64)",
    "attention(queries=16,cached=48,heads=8,kv_heads=1,head_dim=32)",
    "attention(queries=16,heads=8,head_dim=32,causal=true)",
    "attention(queries=16,heads=8,head_dim=48,value_dim=32,causal=true)",
    "softmax(rows=1,columns=9)",
    "layer_norm(rows=3,columns=1)",
    *(f"elementwise(kind={kind},elements=96)" for kind in ELEMENTWISE),
    *(f"elementwise(kind={kind},elements=96,operand=1)" for kind in ("add", "mul", "div", "sub")),
    "elementwise(kind=pow,elements=96,operand=96)",
    "elementwise(kind=mul,elements=96,operand=12)",
)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_a_closed_form_is_what_a_trace_of_the_module_gives(name: str, batch: int) -> None:
    request = resolve_model(name, {}, batch=batch)
    formed = describe(find(name), batch, request.key)
    assert formed.inner_batch == find(name).arguments.get("batch", 1)
    assert attrs.asdict(attrs.evolve(formed, inner_batch=1)) == attrs.asdict(fuse(trace_request(request)))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("gemm", "bmm", "conv2d", "attention"))])
def test_macs_are_those_that_torch_counts(name: str) -> None:
    module, inputs = build_operator(find(name), 2)
    if "attention" in name:  # the counter takes no grouped heads
        query, *held = inputs
        module, inputs = Function(attend), (query, *(one[:, :1].expand(-1, query.shape[1], -1, -1) for one in held))
    with FlopCounterMode(display=False) as counter:
        module(*inputs)
    assert describe(find(name), 2, NO_KEY).mac_count == counter.get_total_flops() // FLOPS_PER_MAC


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value)


def test_counts_by_hand() -> None:
    gemm = describe(find("gemm(m=2,n=3,k=5)"), 7, NO_KEY)
    assert [access.byte_count for access in gemm.accesses] == [4 * 14 * 5, 4 * 3 * 5, 4 * 14 * 3]
    assert (gemm.mac_count, gemm.weight_bytes, gemm.batch) == (14 * 3 * 5, 60, 7)
    decode = describe(find("attention(queries=1,cached=1023,heads=32,kv_heads=8,head_dim=128,kernel=flash)"), 1, NO_KEY)
    assert decode.mac_count == 2 * 32 * 1024 * 128
    assert sum(one.fused_byte_count for one in decode.accesses) == 4 * (2 * 8 * 1024 * 128 + 2 * 32 * 128)
    assert {one.variant for one in decode.operators} == {"flash"}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_a_batch_is_that_of_the_argument_that_it_multiplies(kind: str) -> None:
    grown: dict[str, tuple[str, ...]] = {
        "gemm": ("m",),
        "bmm": ("b",),
        "elementwise": ("elements", "operand"),
        **dict.fromkeys(COLLECTIVES, ("elements",)),
    }
    has_rows = any(one.name == "rows" for one in ARGUMENTS[kind])
    names = grown.get(kind, ("rows",) if has_rows else ("batch",))
    one = find(EXAMPLES[kind])
    larger = find(str(attrs.evolve(one, arguments={**one.arguments, **{name: 4 * one.size(name) for name in names}})))
    batched, direct = describe(one, 4, NO_KEY), describe(larger, 1, NO_KEY)
    assert batched.operators == direct.operators
    assert batched.accesses == direct.accesses


def test_two_spellings_are_one_workload() -> None:
    same = {"gemm(m=1,n=2,k=3)", "GEMM( k=3 , m=1,n=2 )", "gemm(m=1,n=2,k=3,bias=false)", "gemm(n=2,m=1,m=1,k=3)"}
    assert {spell(name) for name in same} == {"gemm(m=1,n=2,k=3)"}
    assert spell("LayerNorm(rows=1,columns=2)") == "layer_norm(rows=1,columns=2)"
    assert spell("attention(queries=1,heads=4,kv_heads=4,head_dim=8,cached=0,causal=true,kernel=Flash)") == (
        "attention(queries=1,heads=4,head_dim=8,kernel=flash)"
    )
    assert spell("elementwise(kind=ADD,elements=6,operand=6)") == "elementwise(kind=add,elements=6)"
    assert spell("elementwise(kind=add,elements=6,operand=1)") == "elementwise(kind=add,elements=6,operand=1)"
    assert spell("max_pool2d(channels=2,size=8,kernel=2,stride=2)") == "max_pool2d(channels=2,size=8,kernel=2)"
    assert spell("resnet18") == "resnet18"
    for name in EXAMPLES.values():
        assert spell(name) == name


@given(st.integers(1, 2**20), st.integers(1, 2**20), st.integers(1, 2**20), st.booleans())
def test_a_spelling_is_read_as_itself(m: int, n: int, k: int, bias: bool) -> None:
    name = spell(f"gemm(k={k},bias={bias},m={m},n={n})")
    operator = find(name)
    assert spell(name) == name
    assert dict(operator.arguments) == {"m": m, "n": n, "k": k, "bias": bias}


WRONG = {
    "gemm(m=1)": "gemm needs n, k: write gemm(m=128,n=4096,k=4096)",
    "gemm(m=1,n=2,k=3": "cannot read 'gemm(m=1,n=2,k=3': write gemm(m=128,n=4096,k=4096)",
    "gemm(1,2,3)": "cannot read '1' in 'gemm(1,2,3)': write gemm(m=128,n=4096,k=4096)",
    "gemm(m=1,n=2,k=3,q=4)": "gemm takes no argument 'q'; it takes: m, n, k, bias",
    "gemm(m=1,n=2,k=3,m=4)": "gemm: m is 1 and 4, expected one value",
    "gemm(m=0,n=2,k=3)": f"gemm: m is '0', expected a whole number from 1 to {2**48}",
    "gemm(m=1.5,n=2,k=3)": f"gemm: m is '1.5', expected a whole number from 1 to {2**48}",
    f"gemm(m={2**48 + 1},n=2,k=3)": f"gemm: m is '{2**48 + 1}', expected a whole number from 1 to {2**48}",
    "gemm(m=1,n=2,k=3,bias=2)": "gemm: bias is '2', expected true or false",
    "conv2d(channels_in=3,channels_out=4,size=8,kernel=3,groups=2)": (
        "conv2d: groups is 2, expected a divisor of channels_in, 3"
    ),
    "conv2d(channels_in=3,channels_out=4,size=2,kernel=5,padding=1)": (
        "conv2d: kernel is 5, expected at most size + 2 padding, 4"
    ),
    "max_pool2d(channels=3,size=4,kernel=3,padding=2)": "max_pool2d: padding is 2, expected at most half the kernel, 1",
    "attention(queries=1,heads=6,kv_heads=4,head_dim=8)": "attention: kv_heads is 4, expected a divisor of heads, 6",
    "attention(queries=1,heads=6,head_dim=8,kernel=a b)": (
        "attention: kernel is 'a b', expected a word like flash_attention"
    ),
    "rotary(rows=1,heads=6,kv_heads=4,head_dim=8)": "rotary: kv_heads is 4, expected a divisor of heads, 6",
    "rotary(rows=1,heads=6,head_dim=7)": "rotary: head_dim is 7, expected an even number: pairs are rotated",
    "experts(rows=1,hidden=8,inner=8,taken=1,experts=2,kernel=nobody)": (
        f"experts: kernel is 'nobody', expected a name with one of {', '.join(MIXING)}"
    ),
    "elementwise(kind=twist,elements=4)": f"elementwise: kind is 'twist', expected one of {', '.join(ELEMENTWISE)}",
    "elementwise(kind=relu,elements=4,operand=2)": "elementwise: relu takes one operand; leave out operand",
    "elementwise(kind=add,elements=4,operand=3)": "elementwise: operand is 3, expected a divisor of elements, 4",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_says_what_would_be_right(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        spell(name)
    assert str(caught.value) == WRONG[name]


def test_what_is_typed_is_completed() -> None:
    assert complete("gem") == ["gemm("]
    assert complete("gemm(") == ["gemm(m=", "gemm(n=", "gemm(k=", "gemm(bias="]
    assert complete("gemm(m=1,") == ["gemm(m=1,n=", "gemm(m=1,k=", "gemm(m=1,bias="]
    assert complete("elementwise(kind=s") == [
        "elementwise(kind=silu", "elementwise(kind=sigmoid", "elementwise(kind=sqrt", "elementwise(kind=sub"
    ]  # fmt: skip
    assert complete("experts(rows=1,stored=i") == ["experts(rows=1,stored=int4", "experts(rows=1,stored=iq4_nl"]
    assert complete("gemm(m=1)") == []
    assert complete("resnet18(") == []


def test_what_no_database_can_add_up_is_refused() -> None:
    with pytest.raises(UsageError, match=r"more than the 1.15e\+18 that can be added up"):
        describe(find(f"gemm(m={2**40},n={2**40},k=1)"), 1, NO_KEY)


@pytest.mark.parametrize("architecture", CLASS_HARDWARE)
def test_samples_cost_the_same_wherever_they_are_written(architecture: str) -> None:
    hardware = load_catalogue().find(CLASS_HARDWARE[architecture])
    names = [name for kind, name in EXAMPLES.items() if any(one.name == "batch" for one in ARGUMENTS[kind])]
    batched = [describe(find(name), 32, NO_KEY) for name in names]
    written = [describe(find(name.replace("(", "(batch=32,")), 1, NO_KEY) for name in names]
    precision = next(iter(hardware.peaks))
    assert evaluate_all(batched, hardware, precision, "fused") == evaluate_all(written, hardware, precision, "fused")


@pytest.mark.sample(1)
@pytest.mark.parametrize("runtime", ["eager", "graph", "fused"])
@pytest.mark.parametrize("architecture", CLASS_HARDWARE)
def test_in_bulk_each_takes_what_it_takes_alone(architecture: str, runtime: str) -> None:
    hardware = load_catalogue().find(CLASS_HARDWARE[architecture])
    workloads = [describe(find(name), batch, NO_KEY) for name in NAMES for batch in (1, 4)]
    for precision in list(hardware.peaks)[:2]:
        totals = evaluate_all(workloads, hardware, precision, runtime)
        for workload, total in zip(workloads, totals, strict=True):
            asked = Configuration(hardware=hardware.id, precision=precision, batch=workload.batch, runtime=runtime)
            (run,) = Evaluator(columns_of(workload)).evaluate_all([(hardware, asked)])
            if not isinstance(run, RunColumns):
                assert total.refusal and str(run).startswith(total.refusal.text)
                continue
            assert (total.latency_fs, total.clock_fraction) == (run.latency_fs, run.clock_fraction)
            assert (total.weight_bytes, total.activation_bytes) == (run.weight_bytes, run.activation_bytes)
            assert total.mac_count == run.mac_count
            # time is shared among the operators of one kernel by floating-point sums over all kernels
            rounding = len(workload.operators) - 1
            assert total.energy_fj is not None
            assert abs(total.energy_fj - run.energy_fj) <= rounding


def test_in_bulk_what_does_not_fit_is_refused_alone() -> None:
    hardware = load_catalogue().find("l4")
    names = ("gemm(m=1,n=8,k=8)", f"gemm(m=1,n={2**20},k={2**16})", "softmax(rows=4,columns=4)")
    small, large, last = evaluate_all([describe(find(name), 1, NO_KEY) for name in names], hardware, "fp16", "graph")
    assert (small.refusal, last.refusal) == (None, None)
    assert large.refusal is not None
    assert (large.refusal.code, large.refusal.values["capacity_bytes"]) == ("memory", 24e9)
    assert_close(large.refusal.values["required_bytes"], 2.0 * (2**36 + 2**16 + 2**20), rel=1e-6)
    assert large.latency_fs is None
    (lacking,) = evaluate_all([describe(find(names[0]), 1, NO_KEY)], hardware, "fp4", "graph")
    assert lacking.refusal is not None and lacking.refusal.code == "precision"
    assert lacking.refusal.values["supported"] == tuple(hardware.peaks)


def test_the_commas_of_an_operator_part_no_names() -> None:
    assert split_names("gemm(m=1,n=2,k=3), resnet18 ,bmm(b=1,m=2,n=3,k=4)") == (
        "gemm(m=1,n=2,k=3)", "resnet18", "bmm(b=1,m=2,n=3,k=4)"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("queries", "cached", "window"),
    [(1, 0, 4), (9, 0, 4), (5, 2, 4), (7, 100, 16), (16, 9, 16), (3, 1, 64), (1, 100, 16), (1000, 40, 128)],
)
def test_queries_of_a_window_see_what_its_mask_lets_them(queries: int, cached: int, window: int) -> None:
    """As transformers' masking_utils has it: `kv_idx > q_idx - sliding_window` and `kv_idx <= q_idx`."""
    heads, width = 4, 8
    name = f"attention(queries={queries},cached={cached},heads={heads},kv_heads=2,head_dim={width},window={window}"
    operators = describe(find(f"{name},causal=true)"), 1, NO_KEY).operators
    places = range(cached, cached + queries)
    seen = sum(place - window < key <= place for place in places for key in range(cached + queries))
    counted = [one.mac_count - one.skipped_mac_count for one in operators if one.mac_count]
    assert counted == [heads * seen * width] * 2
    assert operators[1].special_count - (operators[0].skipped_mac_count // width) == heads * seen
