"""Examples of help, README and docs as shell words, and the user files that they name."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from command import run_here
from joulemap.cli.overview import list_commands, list_start
from joulemap.system.record import frozen
from pyodide import pretend
from tools.manual import Manual, read_manual

ROOT: Final = Path(__file__).parents[2]

PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

FENCED: Final = re.compile(r"^```(?:sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)

LINE: Final = re.compile(r"^(?:    |\$ |)(joulemap [a-z-].*)$")
"""Line of a command: indented, after a prompt, or alone in a shell block."""

EXPLAINED: Final = re.compile(r"\s+#\s.*$|\s{2,}\S.*$")
"""Explanation after a command on its line."""

FILES: Final[Mapping[str, str]] = {
    "mine.py": """
import torch


def net(width: int = 64):
    return torch.nn.Sequential(torch.nn.Conv2d(3, width, 3), torch.nn.ReLU()), torch.zeros(1, 3, 64, 64)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(100, 16)

    def forward(self, ids, mask=None):
        found = self.embed(ids)
        return found if mask is None else found * mask.unsqueeze(-1)


ready = torch.nn.Linear(16, 4)
ready.example_inputs = torch.zeros(1, 16)
""",
    "models.toml": "[models]\nresnet50 = 0.7\nbert_encoder_128 = 0.3\n",
    "day.csv": "hour,rate_per_s\n0,500\n8,6000\n20,500\n",
    "prices.csv": "hardware,purchase_usd,source\nt4,900,an offer\n",
    "mine.csv": "hardware,model,precision,batch,runtime,latency_s,source\n"
    "RTX-4090,resnet18,fp16,1,graph,0.0009,mine\nRTX-4090,resnet50,fp16,8,graph,0.004,mine\n"
    "RTX-4090,resnet18,fp32,1,graph,0.0011,mine\nRTX-4090,vit_b_16,fp16,8,graph,0.012,mine\n",
    "gemm.csv": "hardware,model,precision,batch,runtime,latency_s,source\n"
    'H200,"gemm(m=128,n=4096,k=4096)",bf16,1,graph,1.1e-05,mine\n',
    "table.csv": "hardware,model,precision,batch,runtime,latency_s,source\n"
    'H200,"gemm(m=256,n=4096,k=4096)",bf16,1,graph,1.5e-05,a public table\n',
    "question.sql": "SELECT model, hardware, energy_j FROM runs WHERE batch = $batch ORDER BY run_id",
    "questions/mine/light.v1.sql": """/*
name = "mine.light"
version = 1
schema = 1
summary = "Runs of little energy"
grain = "one row per run"
order = ["run_id"]
[parameters]
max_energy_j = { type = "DOUBLE", meaning = "at most" }
[columns]
run_id = { type = "INTEGER", meaning = "run" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "of the run" }
*/
SELECT run_id, energy_j FROM runs WHERE energy_j <= $max_energy_j ORDER BY run_id
""",
    **{
        name: (ROOT / "tests" / "data" / "verify" / name).read_text(encoding="utf-8")
        for name in ("vllm.json", "trtexec.log", "llama_bench.json", "inferencex.json", "zeus.csv")
    },
}
"""Name -> content of the user files in examples."""

NETS: Final = """
import torch

net = torch.nn.Sequential(torch.nn.Conv2d(3, {width}, 3), torch.nn.ReLU())
net.example_inputs = torch.zeros(1, 3, 32, 32)
"""
"""Model file of a repository, whose width differs between commits."""


def prepare(folder: Path) -> None:
    """Write the user files that examples name."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    done = run_here(["hardware", "template", "--like", "l4"], folder, {})
    for number, name in enumerate(("mine", "mychip", "chips/one", "chips/two")):
        (folder / name).parent.mkdir(exist_ok=True)
        text = re.sub(r'^id = ".*"$', f'id = "own_{number}"', done.stdout, flags=re.MULTILINE)
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    run_here(["hardware", "detect", "--output", "this.toml"], folder, {"HOME": str(folder)})
    pretend(folder / "pyodide")


def prepare_program(folder: Path) -> None:
    """Save the program that examples read; needs torch."""
    import torch

    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU())
    torch.export.save(torch.export.export(net, (torch.zeros(1, 3, 16, 16),)), folder / "net.pt2")


def prepare_repository(folder: Path) -> None:
    """Make the folder a repository with three commits that change a model; the last two are not on main."""
    git = ["git", "-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch", "main"], check=True)
    (folder / "models").mkdir(exist_ok=True)
    for width in (8, 9, 10):
        for name in ("net.py", "models/net.py"):
            (folder / name).write_text(NETS.format(width=width), encoding="utf-8")
        subprocess.run([*git, "add", "net.py", "models/net.py"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", f"{width} channels"], check=True)
        if width == 8:
            subprocess.run([*git, "checkout", "--quiet", "-b", "wider"], check=True)


@frozen
class Example:
    """Displayed command."""

    place: str
    """Command whose help has the example, or name of the page."""
    line: str
    words: tuple[str, ...]
    """Words after parsing by the shell."""
    target: str
    """File to which the shell redirects the output; empty for none."""


def list_lines() -> Iterator[tuple[str, str]]:
    """Yield (place, line) of every example: help in the order of its list, README, docs."""
    for line in list_start().values():
        yield "joulemap", line
    for name in list_commands():
        yield from _list_manual(read_manual(name))
    for page in PAGES:
        yield from _list_page(page)


def _list_manual(manual: Manual) -> Iterator[tuple[str, str]]:
    yield from ((manual.path, line) for line in manual.examples)
    for inner in manual.commands:
        yield from _list_manual(inner)


def _list_page(page: Path) -> Iterator[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    fenced = "\n".join(FENCED.findall(text))
    for line in [*fenced.splitlines(), *re.findall(r"^    joulemap .*$", text, re.MULTILINE)]:
        if match := LINE.match(line):
            yield page.stem, EXPLAINED.sub("", match[1])


@cache
def list_examples() -> tuple[Example, ...]:
    """Return all examples without duplicates, in order."""
    places: dict[str, str] = {}
    for place, line in list_lines():
        if line.startswith("joulemap "):
            places.setdefault(line, place)
    listed = [(place, line) for line, place in places.items()]
    plain = [re.sub(r" (\| .*|> \S+)$", "", line) for _, line in listed]
    show = "joulemap() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n"
    done = subprocess.run(["bash", "-c", show + "\n".join(plain)], capture_output=True, text=True, check=True)
    spelled = [part.split("\0")[:-1] for part in done.stdout.removesuffix("\n\0").split("\n\0")]
    assert len(spelled) == len(listed)
    return tuple(
        Example(place, line, tuple(words), line.partition(" > ")[2])
        for (place, line), words in zip(listed, spelled, strict=True)
    )
