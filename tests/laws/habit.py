"""Laws of what people do: unbatched inputs, older words, defaults spelled out, ports, adapters, odd names."""

from __future__ import annotations

import itertools
import random
import re
import shlex
import time
from functools import cache
from typing import Any, Final

import attrs
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import joulemap
from joulemap.bundle.workload import open_zoo
from joulemap.catalog.digest import ZOO
from joulemap.domain.catalogue import MICROCONTROLLER_W
from joulemap.domain.host import fits_ports
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.hardware import BRIDGE
from joulemap.prediction import find_chip as find_named
from joulemap.system.errors import JoulemapError
from joulemap.trace.formula.pooling import CANDIDATES, PAIR
from joulemap.trace.module import build_on_meta
from joulemap.wing.llm.row import ServingRow
from laws.court import Court
from laws.door import DECODERS, SERVERS, Doors
from laws.network import Network, draw_layer, draw_network
from laws.panel import draw_chips, find_chip, list_chips, list_networks, predict
from laws.part import BLOCKS
from laws.question import Question
from served_case import predict_row

OWN: Final = '''import torch
from torch import nn


class Alone(nn.Module):
    """Network of one image without a batch, or of rows that belong together."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(4, 4)

    def forward(self, image, boxes):
        return self.conv(image).mean((1, 2)), self.head(boxes).softmax(0).sum(0)


def net():
    return Alone(), (torch.zeros(3, {size}, {size}), torch.zeros({rows}, 4))
'''

MIXED: Final = '''import torch
from torch import nn


class Mixed(nn.Module):
    """Network of a graph's nodes, or of a cloud's points."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 64), nn.Linear(64, 64)

    def forward(self, x{edges}):
        for layer in (self.first, self.second):
            x = layer(x).relu()
            {mix}
        return x{end}


def net():
    return Mixed(), (torch.zeros({rows}, 16),{inputs})
'''

MIXES: Final = (
    {"edges": ", edges", "mix": "x = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])", "end": "",
     "inputs": " torch.zeros(2, 200, dtype=torch.int64)"},
    {"edges": "", "mix": "pass", "end": ".max(0).values", "inputs": ""},
)  # fmt: skip
"""Names in `MIXED` for a network of a graph, and for one of points."""

UNKNOWN: Final = ("nvfp5", "int9", "half8", "w4a17")
"""Words for activations that nobody knows."""

SLOW_S: Final = 8.0
"""Processor time above which an error is slow: a traced model takes less."""

LARGE: Final = 4e9
"""Bytes of memory above which a chip holds any of the models of an advised command."""

OLDER: Final = (
    "analyze --{kind} {chip} --model {model}",
    "analyze {model} --{kind} {chip}",
    "compare_models",
    "analyze_{kind}_energy",
    "analyze_{kind}_energy.py --list-{kind}s",
    "analyze_{kind}_energy.py --model {model}",
    "compare --models {model} --{kind} {chip}",
    "profile_{kind}",
)
"""Command lines of older tools."""


def try_rows(court: Court, rng: random.Random) -> None:
    """Compare batches of products of one row on chips whose layers have parts of their own."""
    name = f"gemm(m=1,n={rng.choice((64, 512, 4096))},k={rng.choice((64, 784, 4096))})"
    cells = [(one, "int8") for one in list_chips() if one.startswith(("hailo", "tda4", "dpu", "rk3"))]
    cells = [cell for cell in cells if "int8" in find_chip(cell[0]).peaks]
    question = Question(model=rng.choice((name, rng.choice(list_networks()))), runtime="engine")
    table = predict(question, cells, (1, 2, 4, 8), court)
    if table is not None:
        seconds = table.prediction.latency_s
        is_there = ~np.isnan(seconds[:, :-1]) & ~np.isnan(seconds[:, 1:])
        first, second = (np.where(is_there, one, np.nan) for one in (seconds[:, :-1], seconds[:, 1:]))
        court.compare("batch is not faster", first, second, lambda at: (table.ask(at), table.ask(at, 1)))


def try_requests(doors: Doors, rng: random.Random) -> None:
    """Compare one request in flight at four doors."""
    court, model, chip = doors.court, rng.choice(DECODERS[:3]), rng.choice(SERVERS)
    prompt, output = rng.choice((512, 2048)), rng.choice((32, 128))
    sizes = ("--prompt", str(prompt), "--output", str(output))
    alone, loaded = (("llm", model, chip, *sizes, *one) for one in (("--batch", "1"), ("--in-flight", "1")))
    answer, load = doors.ask(*alone), doors.ask(*loaded)
    if answer is None or load is None or answer["rows"][0]["status"] != "ok" or not load["loads"]:
        return
    seconds = answer["rows"][0]["between_s"]
    asked = (Question(words=alone), Question(words=loaded))
    court.equal("one request", load["loads"][0]["between_s"], seconds, asked)
    row = ServingRow(
        source="laws", hardware=chip, model=model, scope="steady_serving", engine="vllm", prompt_tokens=prompt,
        output_tokens=output,
    )  # fmt: skip
    court.equal("one request", predict_row(row, find_named(chip)[0]).inter_token_latency_s or np.nan, seconds, asked)
    try:
        predict_row(attrs.evolve(row, activation_precision=rng.choice(UNKNOWN)), find_named(chip)[0])
        is_refused = False
    except JoulemapError:
        is_refused = True
    court.same("unknown words", is_refused, True, asked)
    context = prompt + output / 2.0
    step = joulemap.predict_step(model, chip).price(joulemap.Passes.of(1, context=context))
    court.equal("llm and step", float(step.latency_s), seconds, asked)
    ends = load["loads"][0]
    court.compare("quantiles", ends["first_token_s"] * (1.0 + 1e-6), ends["first_token_p99_s"], asked[1:])


def try_spelled(doors: Doors, rng: random.Random) -> None:
    """Compare a language model with the same and its defaults spelled out."""
    model, chip = rng.choice(DECODERS), rng.choice(SERVERS)
    engine = rng.choice(("vllm", "llamacpp"))
    words = ("llm", model, chip, "--batch", "1,8", "--engine", engine)
    answer = doors.ask(*words)
    if answer is None:
        return
    if len(answer["weight_precisions"]) != 1:
        return
    published = {"gpt-oss-20b": "mxfp4"}.get(model, answer["weight_precisions"][0])
    spelled = (*words, "--weight-precision", published, "--prompt", "2048", "--output", "256")
    other = doors.ask(*spelled)
    values = [_read_served(one) for one in (answer, other)]
    doors.court.same("spelled default", values[0], values[1], (Question(words=words), Question(words=spelled)))


def _read_served(answer: dict[str, Any] | None) -> list[tuple[float, float]]:
    rows = [] if answer is None else [row for row in answer["rows"] if row["status"] == "ok"]
    return [(row["between_s"], row["output_token_j"]) for row in rows]


def try_ports(doors: Doors, rng: random.Random) -> None:
    """Compare cards and sticks on random hosts: a slot is on both ends, and a narrower link is never faster."""
    court, model = doors.court, rng.choice(("mobilenet_v2", "resnet50", "efficientnet_b0", "swin_t"))
    guest, links = rng.choice(
        (("coral_edge_tpu", "pcie1x1"), ("hailo_8", "pcie2x1"), ("hailo_8l", "pcie3x2"), ("intel_ncs2", "usb2"),
         ("axelera_metis_m2", "pcie1x2"), ("l4", "pcie3x4"))
    )  # fmt: skip
    hosts = [name for name in list_chips() if find_chip(name).architecture == "cpu"]
    bare = [name for name in hosts if not fits_ports(find_chip(guest).needs_host, find_chip(name).ports)]
    host = rng.choice(rng.choice((hosts, [name for name in bare if find_chip(name).ports] or hosts)))
    words = (
        "compare",
        model,
        guest,
        "--precision",
        "fp16" if guest == "intel_ncs2" else "int8",
        "--site",
        f"host={host}",
    )
    found = [doors.ask(*words), doors.ask(*words, "--site", f"link={links}")]
    asked = (Question(words=words), Question(words=(*words, "--site", f"link={links}")))
    is_joined = fits_ports(find_chip(guest).needs_host, find_chip(host).ports)
    if find_chip(host).ports or find_chip(host).tdp.value < MICROCONTROLLER_W:
        court.same("slot of both ends", all(one is not None for one in found), is_joined, asked)
    if all(found):
        first, second = (one["rows"][0]["latency_s"] for one in found if one)
        court.compare("port", first, second, asked)


def try_links(doors: Doors, rng: random.Random) -> None:
    """Compare boards at links of several widths: a fabric whose weights cross its link, and boards in a pair, which
    have a bridge only if it is asked for.
    """
    court, model = doors.court, rng.choice(("resnet50", "swin_t"))
    words = ("compare", model, rng.choice(("hailo_8", "hailo_8l")), "--precision", "int8", "--site=host=ryzen_9_5950x")
    _compare_ways(doors, words, ("pcie1x1", "pcie3x2"))
    chip = rng.choice(list_bridged())
    own = next(one for one in find_chip(chip).links if one.connects == "host")
    widest = f"pcie{own.generation}x{own.width:.0f}"
    base = ("llm", rng.choice(DECODERS[:3]), chip, "--devices", "2", "--batch", rng.choice(("1", "16")))
    _, plain, _ = _compare_ways(doors, base, ("pcie3x4", widest, "nvlink"))
    usual = _read_time(doors.ask(*base))
    if usual and plain:
        court.compare("port", 0.999 * plain, usual, (Question(words=base),))


def _compare_ways(doors: Doors, words: tuple[str, ...], ways: tuple[str, ...]) -> list[float]:
    """Compare one question at links, each wider than the one before it; return the times, 0 for a refused one."""
    asked = [(*words, "--site", f"link={way}") for way in ways]
    times = [_read_time(doors.ask(*one)) for one in asked]
    for narrow, wide, *pair in zip(times, times[1:], asked, asked[1:], strict=False):
        if narrow and wide:
            doors.court.same("asked link", narrow > wide, True, tuple(Question(words=one) for one in pair))
    return times


def _read_time(answer: dict[str, Any] | None) -> float:
    """Return the time of the first row of an answer in seconds; 0 without one."""
    rows = [] if answer is None else [row for row in answer["rows"] if row["status"] == "ok"]
    return float(rows[0].get("latency_s") or rows[0]["between_s"]) if rows else 0.0


@cache
def list_bridged() -> list[str]:
    """Return the boards that a bridge can join, which is sold apart."""
    return [name for name in list_chips() if any(one.topology == BRIDGE for one in find_chip(name).links)]


def try_adapters(doors: Doors, rng: random.Random) -> None:
    """Compare LoRA at ZeRO stages: the frozen base is divided too."""
    model, chip = (
        rng.choice(("llama-2-7b", "llama-3.1-8b", "qwen3-8b")),
        rng.choice(("rtx_3090", "a100_sxm_80gb", "h100_sxm5")),
    )
    devices = rng.choice((2, 4, 8))
    held = []
    for stage in ("0", rng.choice("12"), "3"):
        words = (
            "train",
            model,
            chip,
            "--devices",
            str(devices),
            "--lora",
            "16",
            "--batch",
            str(devices),
            "--zero",
            stage,
        )
        answer = doors.ask(*words)
        if answer is None or not answer["rows"] or not answer["rows"][0].get("weight_bytes"):
            return
        row = answer["rows"][0]
        held.append(
            (sum(row[f"{name}_bytes"] for name in ("weight", "gradient", "state", "activation")), row["weight_bytes"])
        )
    asked = (Question(words=words),)
    doors.court.compare("ZeRO", [one[0] for one in held[1:]], [one[0] for one in held[:-1]], asked)
    doors.court.compare("shards", held[-1][1], held[0][1] * 1.2 / devices, asked)


def try_unbatched(doors: Doors, rng: random.Random) -> None:
    """Ask about own networks whose inputs have no batch."""
    path, rows = doors.folder / "own.py", rng.choice((2, 100, 999))
    own = OWN.format(size=rng.choice((32, 160, 320)), rows=rows)
    for text in (own, MIXED.format(rows=rows, **rng.choice(MIXES))):
        path.write_text(text)
        words = ("analyze", f"{path}:net", draw_chips(rng, 1)[0], "--precision", "fp32")
        if "fp32" in find_chip(words[2]).peaks and (answer := doors.ask(*words)) is not None:
            doors.court.same("a sample", answer["batches"], [1], (Question(words=words),))
        asked = (rng.choice(("recommend", "cost", "pareto", "sweep")), f"{path}:net", "--hardware", "l4,rtx_4090")
        code, _, told = doors.say(*asked)
        doors.court.same("own networks", told if code else "", "", (Question(words=asked),))


def try_words(doors: Doors, rng: random.Random) -> None:
    """Type what other tools take, odd names and names that are too long."""
    court, advised = doors.court, []
    for line, kind in itertools.product(OLDER, ("cpu", "gpu", "tpu")):
        chips = [one for one in list_chips() if find_chip(one).architecture == kind and "fp32" in find_chip(one).peaks]
        chips = [one for one in chips if find_chip(one).memory_capacity.value > LARGE]
        model = rng.choice(("resnet18", "mobilenet_v2", "vit_b_16"))
        words = tuple(shlex.split(line.format(kind=kind, chip=rng.choice(chips), model=model)))
        code, _, text = doors.say(*words)
        for one in re.findall(r"run `joulemap ([^`]+)`", text) if code else ():
            told = tuple(shlex.split(one))
            advised.append((words, told))
            classes = {find_chip(word).architecture for word in told if word in list_chips()}
            kept = classes | {kind}.intersection(re.split(r"\W", one))
            if "{kind}" in line:
                court.same("advice keeps the class", kept, {kind}, (Question(words=words),))
                court.same("advice keeps the class", "list" in told, "--list" in line, (Question(words=words),))
            if "{model}" in line:
                court.same("advice keeps the class", model in told, True, (Question(words=words),))
    for words, one in rng.sample(advised, 2):
        court.same("advice runs", doors.say(*one)[0], 0, (Question(words=words),))
    long = rng.choice("abxyz") * rng.choice((10_000, 100_000))
    for words in (("compare", long, "l4"), ("compare", "resnet18", long), ("sql", f"SELECT {long}")):
        began = time.process_time()
        _, _, text = doors.say(*words)
        asked = (Question(words=(words[0], "a long name")),)
        doors.court.compare("quick errors", time.process_time() - began, SLOW_S, asked)
        doors.court.compare("short errors", len(text), 1000, asked)
    query = ("sql", "SELECT chr(27) || '[31mred' AS name, chr(7) AS bell")
    _, out, text = doors.say(*query)
    doors.court.same(
        "no control codes",
        [one for one in out + text if ord(one) < 32 and one not in "\n\t"],
        [],
        (Question(words=query),),
    )


def try_counts(court: Court, rng: random.Random) -> None:
    """Count the products of random networks as torch's own counter does, and the boxes of suppressions."""
    network = draw_network(rng)
    names: dict[str, Any] = {}
    exec(network.write(1), names)
    with build_on_meta():
        module, inputs = names["net"]()
    try:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            module.to("meta").eval()(*(one.to("meta") for one in inputs))
    except (RuntimeError, NotImplementedError, ValueError):  # the meta device lacks an operator that the trace replaces
        pass
    else:
        macs = counter.get_total_flops() / FLOPS_PER_MAC
        court.compare(
            "counted products", macs, float(network.trace(1).mac_count), (Question(model=network, hardware="l4"),)
        )
    part = draw_layer(rng, next(one for one in BLOCKS if one.name == "cdist"))
    sizes = dict(part.sizes)
    if max(sizes["x"], sizes["l"]) > 25:
        distance = Network((part,))
        macs = sizes["x"] * sizes["l"] * sizes["n"]
        court.compare(
            "counted products", macs, float(distance.trace(1).mac_count), (Question(model=distance, hardware="l4"),)
        )
    zoo = open_zoo(ZOO)
    for name in (one for one in zoo.models if "rcnn" in one or "ssd" in one):
        work = zoo.form_columns(name, 1)
        counts, own = work.elementwise_count[work.operation == "nms"], (Question(model=name, hardware="l4"),)
        court.compare("suppressed boxes", counts, float(PAIR * CANDIDATES**2), own)
