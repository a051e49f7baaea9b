"""Commands with the options that they have and values that they do not expect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any, Final

import typer

from campaign.mutate import draw_word
from joulemap.cli.app import build

STARTS: Final[Sequence[tuple[str, ...]]] = (
    ("compare", "resnet18"),
    ("compare", "alexnet", "--hardware", "l4"),
    ("compare", "alexnet", "resnet18", "--hardware", "l4", "--level", "subgraph"),
    ("analyze", "resnet18", "h100_sxm5"),
    ("explain", "resnet18", "h100_sxm5", "tpu_v4"),
    ("edp", "resnet18", "tpu_v4"),
    ("utilization", "resnet18"),
    ("pareto", "alexnet", "--hardware", "l4,kpu_t256", "--precision", "fp16", "--batch", "1"),
    ("recommend", "alexnet", "--hardware", "l4,kpu_t256", "--precision", "fp16", "--batch", "1"),
    ("cost", "alexnet", "--hardware", "l4,a100_pcie_80gb", "--precision", "fp16", "--batch", "1"),
    ("sweep", "alexnet", "--hardware", "l4", "--batch", "1,2"),
    ("sql", "SELECT hardware, energy_j FROM runs ORDER BY ALL"),
    ("query", "list"),
    ("query", "show", "run.list"),
    ("query", "run", "run.list"),
    ("hardware", "list"),
    ("hardware", "show", "l4"),
    ("hardware", "template"),
    ("hardware", "detect"),
    ("hardware", "sanity", "--hardware", "l4"),
    ("model", "list"),
    ("model", "show", "resnet18"),
    ("measurements", "list", "--hardware", "l4"),
    ("validate", "--hardware", "t4"),
    ("db", "info"),
    ("db", "check"),
    ("db", "diff", "1", "2"),
    ("db", "export", "out"),
)
"""Commands that answer at once, to begin from."""

VALUES: Final = (
    "resnet18", "alexnet", "linear", "l4", "h100_sxm5", "l4@15W", "Jetson-Orin-Nano@7W", "L4", "cpu", "gpu,cpu", "edge",
    "embedded", "fp32", "fp16,int8", "fp17", "fp4", "fused", "eager", "none", "auto", "json", "csv", "markdown",
    "table",
    "html", "energy", "latency", "edp", "memory", "1", "2", "8", "1,2", "1,2,4,...,16", "4,...,1", "0", "-1", "0.5",
    "1.5",
    "10ms", "1J", "512MB", "15W", "2USD/h", "500USD", "10 parsecs", "1e3", "1,3,224,224", "ids=1,128:int64", "1,3,0,0",
    "tokens=4", "width=[[[[", "name=value", "=", "us", "own.txt", "out/deep/own.txt", "joulemap.duckdb", "run.list@1",
    "subgraph", "operator", "hardware", "category",
)  # fmt: skip

FORBIDDEN: Final = frozenset({"--db", "--help", "--version", "--seconds", "--threads"})
"""Options whose values lead out of a trial's place, or that take as long as they say."""

OUTPUTS: Final = frozenset({"--output", "-o", "--report"})


@cache
def _options(words: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Return (option, takes a value) of a command."""
    found: Any = typer.main.get_command(build(list(words[:1])))
    for word in words:
        inner = getattr(found, "commands", {}).get(word)
        if inner is None:
            break
        found = inner
    return tuple(
        (name, not parameter.is_flag)
        for parameter in found.params
        if hasattr(parameter, "is_flag")
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name not in FORBIDDEN
    )


def draw_command(random: Random) -> list[str]:
    """Return a command with one to four changes: options given, arguments replaced, dropped or added."""
    start = random.choice(STARTS)
    words = list(start)
    names = 2 if start[0] in ("query", "hardware", "model", "measurements", "db") else 1
    for _ in range(random.randint(1, 4)):
        way = random.random()
        if way < 0.7:
            option, has_value = random.choice(_options(start))
            words.append(option)
            if has_value:
                words.append(_draw_path(random) if option in OUTPUTS else _draw_value(random))
        elif way < 0.85 and len(words) > names:
            words[random.randrange(names, len(words))] = _draw_value(random)
        elif way < 0.92 and len(words) > names:
            del words[random.randrange(names, len(words))]
        else:
            words.append(_draw_value(random))
    return [word.replace("\0", "") for word in words]


def _draw_value(random: Random) -> str:
    return random.choice(VALUES) if random.random() < 0.7 else draw_word(random)


def _draw_path(random: Random) -> str:
    """Return a path that stays below the place of the trial."""
    return random.choice(("own.txt", "out/deep/own.txt", ".", "a" * 300, "joulemap.duckdb", "é", "\x1b[31m", "tmp"))
