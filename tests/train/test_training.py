"""Training steps: counts by hand and as PyTorch counts them, what is kept as PyTorch keeps it, devices, refusals."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from training_case import backward_macs, is_again, step_of, train_in_torch

from command import run_here
from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.architecture.cpu import _seen_share
from joulemap.physics.communication import find_path
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.workload import Workload
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from joulemap.plan.workload import find_model, trace
from joulemap.system.errors import ModelError, UsageError
from joulemap.wing.decoder.engine.stack import CONTEXT
from joulemap.wing.train.generated.row import TrainedStep
from joulemap.wing.train.row import add_up_step, find_fullest_memory
from joulemap.wing.train.step_name import read_step
from joulemap.wing.train.training.memory import Memory, measure
from joulemap.workspace import Workspace


class Small(torch.nn.Module):
    """A bit of everything: a stem, a residual block, pooling, two functions of an element, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1, bias=True)
        self.norm = torch.nn.BatchNorm2d(8)
        self.conv = torch.nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False)
        self.down = torch.nn.Conv2d(8, 8, 1, stride=2, bias=False)
        self.pool = torch.nn.MaxPool2d(2)
        self.head = torch.nn.Linear(8 * 4 * 4, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        x = self.pool(torch.nn.functional.gelu(self.conv(x) + self.down(x)))
        made: torch.Tensor = self.head(x.flatten(1))
        return made


def step(name: str, batch: int) -> Workload:
    return trace(find_model(name, Settings(), batch), lambda _: None)


def kept_bytes(workload: Workload) -> int:
    """Return what is alive behind the forward pass and read later, without what is there from first to last."""
    end = max(index for index, one in enumerate(workload.operators) if one.name == "loss")
    last = len(workload.operators) - 1
    return sum(
        one.byte_count
        for one in workload.buffers
        if one.birth_index <= end < one.death_index and (one.birth_index, one.death_index) != (0, last)
    )


def build(name: str, batch: int, device: str = "meta") -> tuple[torch.nn.Module, torch.Tensor]:
    with torch.device(device):
        return getattr(torchvision.models, name)(), torch.zeros(batch, 3, 224, 224)


def test_two_layers_by_hand() -> None:
    """8 to 16 to 4, no bias, two samples: 2 x 128 and 2 x 64 MACs; nothing before the first layer has a gradient."""
    module = torch.nn.Sequential(
        torch.nn.Linear(8, 16, bias=False), torch.nn.ReLU(), torch.nn.Linear(16, 4, bias=False)
    )
    workload = step_of(module, torch.zeros(2, 8))
    by_name = {one.name: one for one in workload.operators}
    assert by_name["0"].mac_count == by_name["0.backward.weight"].mac_count == 256
    assert "0.backward.input" not in by_name
    assert by_name["2.backward.input"].mac_count == by_name["2.backward.weight"].mac_count == 128
    shape = by_name["2.backward.weight"]
    assert (shape.gemm_m, shape.gemm_n, shape.gemm_k) == (4, 16, 2)
    # kept: the input, what the function gives, and the logarithms of probabilities
    assert kept_bytes(workload) == 4 * (2 * 8 + 2 * 16 + 2 * 4)
    assert workload.parameter_count == 192
    assert workload.work == "training"


@pytest.mark.parametrize(
    ("recipe", "states", "read", "written"),
    [
        # of each weight four bytes: gradient, two moments and the copy; the same but the gradient, and the weight
        ({"optimizer": "adamw"}, 3, 4, 4),
        ({"optimizer": "adamw", "master": False}, 2, 4, 3),
        ({"optimizer": "momentum"}, 2, 3, 3),
        ({"optimizer": "sgd", "master": False}, 0, 2, 1),
    ],
)
def test_an_optimizer_reads_and_writes_what_its_rule_says(
    recipe: dict[str, Any], states: int, read: int, written: int
) -> None:
    workload = step_of(torch.nn.Linear(16, 8, bias=False), torch.zeros(2, 16), **recipe)
    (place,) = (index for index, one in enumerate(workload.operators) if one.module_path == "optimizer")
    moved = Counter[bool]()
    for access in workload.accesses:
        if access.operator_index == place:
            assert access.fused_byte_count == access.byte_count
            moved[access.role == "output"] += access.byte_count
    assert (moved[False], moved[True]) == (4 * 128 * read, 4 * 128 * written)
    memory = measure(columns_of(workload), "fp32", "graph")
    assert (memory.weights, memory.gradients, memory.states) == (512, 512, 512 * states)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["small", "resnet18", pytest.param("densenet121", marks=pytest.mark.slow)])
def test_gradients_have_the_macs_that_pytorch_counts(name: str) -> None:
    module: torch.nn.Module
    if name == "small":
        with torch.device("meta"):
            module, inputs = Small(), torch.zeros(2, 3, 16, 16)
        workload = step_of(module, inputs)
    else:
        module, inputs = build(name, 2)
        workload = step(f"train({name})", 2)
    _, gradients, kept = train_in_torch(module, inputs)
    assert backward_macs(workload) == gradients
    assert_close(kept_bytes(workload), kept, rel=0.03)


@pytest.mark.slow
def test_gradients_of_groups_have_the_macs_of_their_groups() -> None:
    """PyTorch's counter takes the gradient of grouped weights for that of one group of all channels."""
    module, inputs = build("mobilenet_v2", 2)
    _, gradients, kept = train_in_torch(module, inputs)
    workload = step("train(mobilenet_v2)", 2)
    forward = {one.name: one for one in workload.operators}
    more = sum(
        (one.gemm_groups - 1) * one.mac_count
        for one in forward.values()
        if one.kind in ("depthwise_conv", "grouped_conv") and ".backward" not in one.name
    )
    assert backward_macs(workload) + more == gradients
    assert_close(kept_bytes(workload), kept, rel=0.01)


@pytest.mark.slow
def test_attention_is_computed_again_and_keeps_what_pytorch_keeps() -> None:
    module, inputs = build("vit_b_16", 1, "cpu")
    _, gradients, kept = train_in_torch(module, inputs)
    workload = step("train(vit_b_16)", 1)
    scores = sum(one.mac_count for one in workload.operators if one.name.endswith("scores_again"))
    assert backward_macs(workload) + scores == gradients
    assert_close(kept_bytes(workload), kept, rel=0.01)


GPT = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_positions": 32, "vocab_size": 128}


def step_of_gpt(folder: Path, layers: int, rest: str, tokens: int = 32) -> Workload:
    """Return a step of two sequences."""
    path = folder / f"{layers}.json"
    path.write_text(json.dumps({**GPT, "n_layer": layers, "n_positions": tokens}))
    return step(f"train({path}(tokens={tokens},logits=all{rest}))", 2)


@pytest.mark.parametrize(("tokens", "seen"), [(32, 1.0), (256, (256 + 64) / 512), (2048, (2048 + 256) / 4096)])
def test_a_cpu_skips_what_a_mask_hides_forward_and_backward(tmp_path: Path, tokens: int, seen: float) -> None:
    """Blocks of queries see the keys before them, and all of their own block: half of the keys, and half a block."""
    work = columns_of(step_of_gpt(tmp_path, 1, "", tokens))
    masked = np.flatnonzero(work.is_causal & work.has_macs)
    assert len(masked) > 2  # scores and sums, both of them backward
    for share in _seen_share(form_kernels(work, "fp32", "graph"))[masked]:
        assert_close(share, seen)


@pytest.mark.parametrize(
    ("rest", "precision", "kept", "norms", "heads"),
    [
        # 34 a token and column, less 2 of masks of dropout, which a trace of inference has none of
        ("", "bf16", 32.0, 1.0, 1.0),
        # 10 + 24 / t, less these: each device keeps what norms and sums read, all of it
        (",devices=2", "bf16", 8.0 + 24.0 / 2, 1.0, 0.5),
        # 34 / t
        (",devices=2,sequence_parallel=true", "bf16", 32.0 / 2, 0.5, 0.5),
        # inputs of products, 2 + 2 + 8 of 32, are half as wide, but that of the third, which attention's gradient reads
        ("", "fp8", 32.0 - 1.0 - 1.0 - 4.0, 1.0, 1.0),
    ],
)
def test_a_layer_keeps_what_the_formula_says(
    rest: str, precision: str, kept: float, norms: float, heads: float, tmp_path: Path
) -> None:
    """Korthikanti et al., 2022: s b h (34 + 5 a s / h) / t, the second part of scores, which are computed again here.

    Beside them are statistics of four bytes: two of each row of two norms, one of each row of each head.
    """
    held = []
    for layers in (1, 2):
        workload = step_of_gpt(tmp_path, layers, rest)
        work = columns_of(workload)
        end = max(index for index, one in enumerate(workload.operators) if one.name == "loss")
        memory = measure(work, precision, "fused")
        held.append(Widths(work, precision).live_bytes(is_fused=True)[end] - memory.gradients - memory.states)
    rows = 2 * 32
    assert_close(held[1] - held[0], rows * (64 * kept + 4 * 2 * 2 * norms + 4 * 4 * heads))


def test_tokens_that_devices_divide_are_exchanged_as_the_same_bytes(tmp_path: Path) -> None:
    """A sum is a scatter and a gather of it; gradients gather once more what the forward pass let go of."""
    whole, parts = (step_of_gpt(tmp_path, 2, rest) for rest in (",devices=2", ",devices=2,sequence_parallel=true"))
    sums, halves = (
        Counter(
            (one.operation, is_again(one)) for one in made.operators
            if one.kind == "communication" for _ in range(one.output_element_count // (2 * 32 * 64))
        )
        for made in (whole, parts)
    )  # fmt: skip
    # two of each layer and one of the tokens, forward; as many of their gradients, each of one instead of all devices
    assert sums == {("all_reduce", False): 2 * 5}
    assert halves == {("reduce_scatter", False): 5 + 5, ("all_gather", False): 5 + 5, ("all_gather", True): 5}
    assert backward_macs(whole) == backward_macs(parts)
    assert not [one for one in parts.operators if one.name.endswith("join") and one.operation == "pad"]


def test_products_alone_are_narrow_at_eight_bits() -> None:
    """192 weights: two bytes and a copy of one for products, gradients of two, states of twelve; operands of one."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 16, bias=False), torch.nn.Linear(16, 4, bias=False))
    workload = step_of(module, torch.zeros(2, 8))
    work = columns_of(workload)
    memory = measure(work, "fp8", "graph")
    assert (memory.weights, memory.gradients, memory.states) == (3 * 192, 2 * 192, 12 * 192)
    (place,) = (index for index, one in enumerate(workload.operators) if one.name == "1.backward.weight")
    moved = work.access_bytes * Widths(work, "fp8").scale
    assert moved[work.access_operator == place].tolist() == [2 * 4, 2 * 16, 2 * 64]


@pytest.mark.sample(1)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_stages_of_zero_divide_what_they_say(zero: int) -> None:
    """Weights and gradients of two bytes, three times four bytes of the optimizer; each divided by four or not."""
    workload = step(f"train(resnet18,devices=4{f',zero={zero}' * (zero > 0)})", 2)
    memory = measure(columns_of(workload), "bf16", "graph")
    count = 11_689_512
    assert_close(memory.weights, 2 * count / (4 if zero > 2 else 1), rel=1e-6)
    assert_close(memory.gradients, 2 * count / (4 if zero > 1 else 1), rel=1e-6)
    assert_close(memory.states, 12 * count / (4 if zero else 1), rel=1e-6)
    talk = Counter(one.operation for one in workload.operators if one.kind == "communication")
    elements = sum(one.output_element_count for one in workload.operators if one.kind == "communication")
    assert set(talk) == ({"reduce_scatter", "all_gather"} if zero else {"all_reduce"})
    # gathered once behind the optimizer, or before the forward pass and before gradients
    assert elements == count * (1, 2, 2, 3)[zero]


def test_a_network_joins_hosts_by_hand() -> None:
    h100 = load_catalogue().find("h100_sxm5")
    inside, beyond, alone = (find_path(h100, *asked) for asked in ((8, 1), (16, 1), (16, 8)))
    assert (inside.ring_rate, inside.far_rate, inside.near) == (450e9, 0.0, 8)
    # eight cards of 50 GB/s are slower than the links of a device; one of each host has its own card alone
    assert (beyond.ring_rate, beyond.near, beyond.far_latency) == (400e9, 8, 5e-6)
    assert (alone.ring_rate, alone.near, alone.far_latency) == (50e9, 1, 20e-6)


@pytest.mark.slow
def test_a_module_is_trained_at_the_batch_of_its_example(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "train.duckdb")
    answer = workspace.train(
        torch.nn.Linear(16, 8), torch.zeros(4, 16), hardware=("l4", "t4"), batch=4, precision="fp8"
    )
    assert [(row.status, row.batch, row.reason) for row in answer.rows] == [
        ("ok", 4, ""), ("unsupported", 4, "t4 does not run this model at fp8 (it has fp16, fp32, fp64: --precision)"),
    ]  # fmt: skip
    assert "not hidden" not in str(answer)


@pytest.mark.slow
def test_a_step_whose_conversions_are_not_counted_takes_at_least_its_time(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "train.duckdb")
    (row,) = workspace.train("resnet50", hardware="h100_sxm5", batch=32, precision="fp8").rows
    assert row.is_lower_bound
    assert (row.latency_half_width, row.energy_half_width) == (None, None)
    (row,) = workspace.train("resnet50", hardware="h100_sxm5", batch=32).rows
    assert not row.is_lower_bound
    assert row.latency_half_width is not None
    assert row.reserved_bytes == CONTEXT
    held = row.weight_bytes + row.gradient_bytes + row.state_bytes + row.activation_bytes + row.reserved_bytes
    assert_close(row.memory_fraction, held / row.capacity_bytes)


def test_a_name_has_one_spelling() -> None:
    inner, recipe = read_step("Train( llama-3.1-8b(tokens=64,logits=all) , devices=8, ZERO=1, master=true)".lower())
    assert recipe.spell(inner) == "train(llama-3.1-8b(tokens=64,logits=all),devices=8,zero=1)"
    asked = find_model("train(llama3.1-8b(logits=all,tokens=64),zero=1,devices=8)", Settings(), 1).request.model
    assert asked == recipe.spell(inner)


def test_small_batches_before_the_last_add_up_their_gradients() -> None:
    """192 weights: as many additions, held from first to last; nothing is exchanged and no weight changes."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 16, bias=False), torch.nn.Linear(16, 4, bias=False))
    workload = step_of(module, torch.zeros(2, 8), adds=True, devices=4)
    added = [one for one in workload.operators if one.name.endswith(".backward.held")]
    assert [one.elementwise_count for one in added] == [64, 128]
    assert not [one for one in workload.operators if one.kind == "communication" or one.module_path == "optimizer"]
    memory = measure(columns_of(workload), "fp32", "fused")
    assert (memory.gradients, memory.states) == (4 * 192, 0)
    divided = step_of(module, torch.zeros(2, 8), adds=True, devices=4, zero=2)
    assert [one.operation for one in divided.operators if one.kind == "communication"] == ["reduce_scatter"]
    assert [one.elementwise_count for one in divided.operators if one.name.endswith(".held")] == [48]


def take(step_s: float, step_j: float, macs: int) -> TrainedStep:
    """Return a run whose pass takes all of its time but a second for the optimizer."""
    known = dict.fromkeys(TrainedStep.__annotations__)
    phases = {"forward_s": step_s / 2, "backward_s": step_s / 2, "again_s": 0.0, "exchange_s": 0.0, "optimizer_s": 0.0}
    return TrainedStep(**{**known, **phases, "step_s": step_s, "step_j": step_j, "model_mac_count": macs})  # type: ignore[arg-type]


def test_a_pipeline_by_hand() -> None:
    """4 stages, 8 small batches: 5 + 7 x 4 s, and 3 x 4 s of waiting at 10 W.

    The last stage takes 50 + 7 x 40 + 120 J; each other, which works 4 + 7 x 3 s of 45, takes 40 + 7 x 30 + 200.
    """
    last, inner = {"last": take(5.0, 50.0, 80)}, {"inner": take(4.0, 40.0, 60), "inner_before": take(3.0, 30.0, 60)}
    parts = {**last, "before": take(4.0, 40.0, 80), **inner}
    whole = add_up_step(parts, accumulate=8, stages=4, static_w=10.0)
    assert (whole.step_s, whole.bubble_s) == (45.0, 12.0)
    assert_close(whole.device_j, (450.0 + 3 * 450.0) / 4)
    assert whole.mac_count == 8 * (80 + 3 * 60) / 4
    assert_close(sum(whole.phases.values()) + 12.0, 45.0)
    alone = add_up_step(last, accumulate=1, stages=1, static_w=10.0)
    assert (alone.step_s, alone.device_j, alone.mac_count, alone.bubble_s) == (5.0, 50.0, 80, None)


def test_in_flight_activations_are_those_of_as_many_passes_as_stages() -> None:
    first, last = (Memory(weights=w, gradients=2.0, states=3.0, activations=a) for w, a in ((1.0, 4.0), (5.0, 6.0)))
    assert find_fullest_memory(first, last, 4) == Memory(weights=1.0, gradients=2.0, states=3.0, activations=16.0)
    assert find_fullest_memory(first, last, 1) == last


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("train(resnet18,zero=1)", "zero=1 needs several devices"),
        ("train(resnet18,zero=4,devices=2)", "zero is 4, expected a stage from 0 to 3"),
        ("train(resnet18,optimizer=lion)", "train: optimizer is 'lion', expected one of sgd, momentum, adam, adamw"),
        ("train(resnet18", "cannot read 'train(resnet18': write train(resnet50"),
        ("train(train(resnet18))", "cannot read 'train(train(resnet18))'"),
        ("train(gemm(m=1,n=1,k=1))", "gemm(m=1,n=1,k=1) is a single operator, which is not trained: name a model"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_line(name: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_model(name, Settings(), 1)
    assert str(refused.value).startswith(told)


def test_what_is_not_trained_as_it_is_traced_is_refused() -> None:
    with pytest.raises(ModelError, match="depends on its weights"):
        step("train(stream_copy)", 1)
    with pytest.raises(ModelError, match="cached tokens, which training does not use"):
        step("train(llama-3.2-1b(cached=64))", 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["resnet18", "--batch", "250", "--devices", "8"],
            "batch 250 cannot be divided over 8 devices: use 248 or 256",
        ),
        (["resnet18", "--precision", "int8"], "precision is int8, expected one of fp8, bf16, fp16, tf32, fp32, fp64"),
        (["resnet18", "--optimizer", "adamx"], "optimizer is 'adamx', expected one of sgd, momentum, adam, adamw"),
        (["llama-3.1-8b", "--sequence-parallel"], "sequence_parallel needs several devices"),
        (
            ["llama-3.1-8b", "--devices", "8", "--tensor-devices", "8", "--tokens", "100", "--sequence-parallel"],
            "100 tokens cannot be divided by 8 devices",
        ),
        (["resnet18", "--tokens", "64"], "leave out --tokens"),
        (["resnet18", "--lora", "16", "--weight-precision", "nf4"], "No such option: --weight-precision"),
        (["llama-3.1-8b", "--devices", "12", "--tensor-devices", "8"], "12 devices cannot be divided into groups of 8"),
        (["llama-3.1-8b", "--devices", "4", "--pipeline-devices", "4"], "4 stages (--pipeline-devices) need"),
        (["resnet18", "--devices", "4", "--accumulate", "3", "--batch", "64"], "4 devices in 3 micro-batches: use 60"),
    ],
)
def test_commands_refuse_in_a_line(words: list[str], told: str, tmp_path: Path) -> None:
    done = run_here(["train", *words, "--db", str(tmp_path / "none.duckdb")], tmp_path, {})
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


class Three(torch.nn.Module):
    """64 to 128 to 256 to 10, some layers frozen."""

    def __init__(self, frozen: str) -> None:
        super().__init__()
        self.a, self.b, self.c = torch.nn.Linear(64, 128), torch.nn.Linear(128, 256), torch.nn.Linear(256, 10)
        for name in frozen:
            getattr(self, name).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.c(torch.relu(self.b(torch.relu(self.a(x)))))
        return hidden


@pytest.mark.parametrize("frozen", ["", "a", "ab", "b", "c", "bc"])
def test_frozen_weights_have_no_gradient_and_no_state(frozen: str) -> None:
    """A trained layer costs its product again for its weights; a layer passes a gradient on if one before it learns."""
    samples, sizes = 8, {"a": (64, 128), "b": (128, 256), "c": (256, 10)}
    traced = step_of(Three(frozen), torch.zeros(samples, 64), master=False)
    learning = [name for name in sizes if name not in frozen]
    macs = {name: samples * rows * columns for name, (rows, columns) in sizes.items()}
    expected = sum(macs[name] for name in learning) + sum(macs[name] for name in sizes if name > min(learning))
    assert backward_macs(traced) == expected
    forward, backward, _ = train_in_torch(Three(frozen), torch.zeros(samples, 64))
    assert (sum(macs.values()), expected) == (forward, backward)
    trained = sum(rows * columns + columns for name, (rows, columns) in sizes.items() if name in learning)
    weights = sum(rows * columns + columns for rows, columns in sizes.values())
    memory = measure(columns_of(traced), "fp32", "eager")
    assert (memory.weights, memory.gradients, memory.states) == (4 * weights, 4 * trained, 8 * trained)


def test_a_frozen_batch_norm_is_read_as_before() -> None:
    def net(*, is_frozen: bool) -> torch.nn.Module:
        found = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.Flatten())
        found[1].requires_grad_(not is_frozen)
        return found

    images = torch.zeros(2, 3, 8, 8)
    trained, frozen = (step_of(net(is_frozen=one), images) for one in (False, True))
    forward = [
        [one.elementwise_count for one in step.operators if ".backward" not in one.name and one.kind == "batch_norm"]
        for step in (trained, frozen)
    ]
    assert forward[0] == forward[1]
    assert frozen.parameter_count == trained.parameter_count - 2 * 8


def test_a_module_without_a_trained_weight_is_not_trained() -> None:
    with pytest.raises(ModelError, match="depends on its weights"):
        step_of(Three("abc"), torch.zeros(8, 64))


@pytest.mark.slow
@pytest.mark.parametrize(
    "hardware", ["a40@200W,l4@900MHz,jetson_agx_orin@30W,a40", "l4[memory_bandwidth=200GB/s]", "./mine.toml"]
)
def test_hardware_that_no_file_lists_trains_on_its_own_database(hardware: str, tmp_path: Path) -> None:
    text = run_here(["hardware", "template", "--like", "l4"], tmp_path, {}).stdout
    (tmp_path / "mine.toml").write_text(text)
    name, _, changes = hardware.removesuffix("]").partition("[")
    words = ["--hardware", name, *(["--set", changes] if changes else []), "--batch", "8"]
    done = run_here(["train", "resnet18", *words, "--format", "json"], tmp_path, {"JOULEMAP_WAIT": "2"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"][0]["step_s"] > 0.0
