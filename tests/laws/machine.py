"""Laws of machines: sets of devices, hosts and memories that the generator draws."""

from __future__ import annotations

import json
import random
import re
from typing import Any, Final

from joulemap.system.errors import ExitCode
from joulemap.wing.here.match import GPU
from laws.door import BRIEF, Doors
from laws.panel import find_chip, list_chips
from laws.question import Question

CARDS: Final = (
    "NVIDIA GeForce RTX 3090, 24576 MiB, 350.00 W, 2100 MHz, 9751 MHz, 8.6",
    "NVIDIA GeForce RTX 4090, 24564 MiB, 450.00 W, 3105 MHz, 10501 MHz, 8.9",
    "NVIDIA GeForce RTX 5090, 32607 MiB, 575.00 W, 3090 MHz, 14001 MHz, 12.0",
    "Tesla P40, 23040 MiB, 250.00 W, 1531 MHz, 3615 MHz, 6.1",
)
"""Lines of nvidia-smi, without its headings."""

HEADINGS: Final = "name, memory.total [MiB], power.limit [W], clocks.max.sm [MHz], clocks.max.memory [MHz], compute_cap"

PROCESSORS: Final = (("Intel(R) Core(TM) i9-14900K", 24), ("13th Gen Intel(R) Core(TM) i9-13900KS", 24))
"""Processors with three times as many cores as fast ones."""

LARGE: Final = ("llama-3.1-70b", "qwen3-32b", "gpt-oss-120b", "mistral-small-3.1-24b", "qwen3-30b-a3b")

APPLES: Final = ("Apple M4", "Apple M4 Pro", "Apple M3 Max")

GIB: Final = 2**30

GUESTS: Final = ("coral_edge_tpu", "hailo_8", "l4")


def try_sets(doors: Doors, rng: random.Random) -> None:
    """Compare a machine with the same and one card more, and read which devices the best split leaves idle."""
    court, model, weights = doors.court, rng.choice(LARGE), rng.choice(("q8_0", "q8_0", "q4_k_m"))
    cards = [rng.choice(CARDS) for _ in range(rng.choice((1, 2, 3)))]
    processor, size = rng.choice(PROCESSORS), rng.randint(16, 256)
    slots = rng.choice((("DDR5_A1", "DDR5_A2", "DDR5_B1", "DDR5_B2"), ("DIMM_A2", "DIMM_B2")))
    rates = []
    for some in (cards, [*cards, rng.choice(CARDS)]):
        path = doors.folder / "rig.json"
        path.write_text(json.dumps(_record(some, processor, size, slots)))
        words = ("here", model, "--from", str(path), "--weight-precision", weights)
        asked = (Question(words=(*words, *some)),)
        answer = doors.ask(*words)
        rows = [] if answer is None else [row for row in answer["served"] if row["tokens_per_s"]]
        best = max(rows, key=lambda row: row["tokens_per_s"], default=None)
        rates.append(best["tokens_per_s"] if best else 0.0)
        if best and best["cards"]:
            court.same("no idle device", len(_list_cards(best["cards"])), len(some), asked)
        if answer is not None and best and (split := re.search(r"-ts ([\d/]+)", best["options"])):
            cased = [one["label"] for one in answer["devices"] if one["kind"] == GPU for _ in range(one["chip_count"])]
            used = [card for card, layers in zip(cased, split[1].split("/"), strict=True) if layers != "0"]
            court.same("printed split", sorted(used), sorted(_list_cards(best["cards"] or best["label"])), asked)
        if answer is not None:
            told = re.findall(r"has \d+ \S+ processors", json.dumps(answer))
            court.same("one processor", told, [], asked)
            memory = answer["devices"][-1]["memory_bytes_per_s"] or 0.0
            court.compare("channels", memory, 2.0 * 8.0 * 5.6e9, asked)
    court.compare("one more device", rates[0], rates[1], asked)


def _list_cards(label: str) -> list[str]:
    """Return the cards of a label such as `2 x rtx_3090 + rtx_4090`."""
    parts = [one.rpartition(" x ") for one in label.split(" + ")]
    return [name for many, _, name in parts for _ in range(int(many or 1))]


def _record(cards: list[str], processor: tuple[str, int], size: int, slots: tuple[str, ...]) -> dict[str, str]:
    """Return the outputs of a machine's tools."""
    name, cores = processor
    modules = (
        f"Memory Device\n\tData Width: 64 bits\n\tSize: {max(1, size // len(slots))} GB\n\tLocator: {slot}\n"
        "\tBank Locator: BANK 0\n\tType: DDR5\n\tConfigured Memory Speed: 5600 MT/s\n"
        for slot in slots
    )
    return {
        "system": "Linux",
        "lscpu": f"Model name: {name}\nCPU(s): {2 * cores}\nThread(s) per core: 2\nCore(s) per socket: {cores}\n"
        "Socket(s): 1\nFlags: fpu sse sse2 ssse3 sse4_1 sse4_2 avx f16c fma avx2",
        "meminfo": f"MemTotal: {size * 2**20} kB\n",
        "dmidecode": "\n".join(modules),
        "nvidia-smi": "\n".join((HEADINGS, *cards)),
    }


def try_memories(doors: Doors, rng: random.Random) -> None:
    """Read every number of usable memory in one answer about a Mac of any size."""
    size = rng.choice((8, 16, 24, 36, 48, 64, 96, 128)) * GIB
    path = doors.folder / "mac.json"
    chip = rng.choice(APPLES)
    sysctl = f"hw.memsize: {size}\nhw.physicalcpu: 10\nmachdep.cpu.brand_string: {chip}\n"
    profile = {"SPDisplaysDataType": [{"sppci_model": chip, "sppci_cores": "10"}]}
    recording = {"system": "Darwin", "sysctl": sysctl, "system_profiler": json.dumps(profile)}
    path.write_text(json.dumps(recording))
    words = ("here", rng.choice(LARGE), "--from", str(path))
    _, text = doors.run(*words, *BRIEF)  # also where nothing runs
    answer = json.loads(text or '{"devices": [], "served": []}')
    most = {one["label"]: one["usable_bytes"] for one in answer["devices"] if one["usable_bytes"]}
    for row in answer["served"]:
        told = re.search(r"([\d.]+) GB usable(?! with)", row["reason"])
        if told is not None:
            left, right = float(told[1]), most[row["label"]] / 1e9
            doors.court.equal("usable memory", left, right, (Question(words=words),))


def try_hosts(doors: Doors, rng: random.Random) -> None:
    """Compare the price of a card in a random host with the sum of both prices."""
    host = rng.choice([name for name in list_chips() if find_chip(name).architecture == "cpu"])
    guest = rng.choice(GUESTS)
    words = (
        "recommend",
        "mobilenet_v2",
        "--hardware",
        guest,
        "--precision",
        "int8",
        "--batch",
        "1",
        "--site",
        f"host={host}",
    )
    answer = doors.ask(*words, "--max-latency", "10s")
    rows: list[dict[str, Any]] = [] if answer is None else answer["rows"]
    prices = [find_chip(one).price_purchase for one in (guest, host)]
    for row in rows[:1]:
        asked = (Question(words=words),)
        if None in prices:
            doors.court.same("price of a system", row.get("total_purchase_usd"), None, asked)
        else:
            total = sum(one.value for one in prices if one is not None)
            doors.court.equal("price of a system", row["total_purchase_usd"], total, asked)


IMPOSSIBLE: Final = {"clock": 14e9, "memory_capacity": 1e6, "tdp": 0.05}
"""Number of a large chip -> a value that no such chip has, in units of the SI."""


def try_files(doors: Doors, rng: random.Random) -> None:
    """Check the file of a large chip with one impossible number."""
    known = [(name, find_chip(name)) for name in list_chips()]
    large = [name for name, one in known if one.memory_capacity.value >= GIB and one.tdp.value >= 20.0]
    chip, path = rng.choice(large), doors.folder / "mine.toml"
    _, text = doors.run("hardware", "template", "--like", chip)
    for name, value in IMPOSSIBLE.items():
        factor = value / getattr(find_chip(chip), name).value
        form = rf"^({name} = \{{ value = )([\d.e+-]+)"
        head, number = re.findall(form, text, re.MULTILINE)[0]
        path.write_text(text.replace(f"{head}{number}", f"{head}{float(number) * factor:.6g}"))
        words = ("hardware", "check", str(path))
        asked = (Question(words=(*words, chip, name)),)
        doors.court.same("impossible hardware", doors.say(*words)[0], int(ExitCode.CATALOGUE), asked)
