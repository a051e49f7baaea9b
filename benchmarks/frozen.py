"""Save the answers of every command, and compare them with the answers of another version.

python benchmarks/frozen.py FOLDER       run all commands, and write a file for each
python benchmarks/frozen.py OLD NEW      list the differences of two such folders, by key and value

Each file has an answer as JSON, as CSV, and as the screen of 80 columns. `--only WORDS` runs the commands that begin
with one of these words, such as `--only "compare,llm"`. The commands are about three models and four chips, a user's
module and chip, and a model of transformers if that is installed. Each example of `--help` that needs no other files
and every built-in query are included. The last line counts the differences.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import math
import os
import re
import shlex
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from growth import list_examples
from joulemap.catalog.digest import DATA
from joulemap.cli.app import run
from joulemap.store.engine import connect
from joulemap.store.library import list_queries
from query import choose, fill

CHIPS: Final = ("xeon_8490h", "h100_sxm5", "tpu_v4", "kpu_t256")
MODULE: Final = """import torch

class Net(torch.nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, width, 3, stride=2)
        self.norm = torch.nn.BatchNorm2d(width)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.stem(x))).mean((2, 3)))

def net(width: int = 16):
    return Net(width)
"""
CONFIGURATION: Final = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
}
ABOUT: Final = (
    "compare {model} {chips}",
    "compare {model} {chips} --precision int8 --batch 1,8",
    "compare {model} {chips} --level run",
    "compare {model} {chips} --level operator --by category",
    "compare {model} {chips} --metric efficiency --show details",
    "analyze {model} {chip}",
    "analyze {model} {chip} --level operator",
    "explain {model} {pair} --metric energy",
    "explain {model} {pair} --metric latency",
    "explain {model} {pair} --metric edp",
    "explain {model} {pair} --metric memory",
    "pareto {model} {chips} --batch 1,8",
    "recommend {model} {chips} --max-latency 50ms",
    "cost {model} {chips}",
    "edp {model} {chip}",
    "edp {model} {chip} --level operator",
    "utilization {model} {chips}",
    "sweep {model} {chips} --batch 1,8,32",
    "architectures {model}",
    "flip {model} {pair}",
    "sensitivity {model} {chip}",
    "fusion {model} {chip}",
    "model show {model}",
)
OWN: Final = (
    "compare ./own.py:net l4 --input 1,3,32,32",
    "analyze ./own.py:net tpu_v4 --input 1,3,32,32 --batch 8",
    "compare resnet18 l4 ./own_chip.toml",
    "hardware show ./own_chip.toml",
)
WRITING: Final = ("report", "plot", "export")
"""Commands whose answer is a file."""

USAGE: Final = 2
"""Exit code of a command without such a format."""

WHOLE_LEDGER: Final = "SELECT * FROM energy_ledger"
"""Statement of an example that shows three rows, but whose JSON and CSV have every line of every run: gigabytes."""

SAME: Final = 1e-9
"""Relative difference below which two numbers are equal."""


def list_questions() -> Iterator[list[str]]:
    """Yield the words of each command except `query`."""
    for model, (chip, other) in zip(("resnet18", "vit_b_16", "mobilenet_v2"), itertools.pairwise(CHIPS), strict=True):
        for line in ABOUT:
            yield shlex.split(line.format(model=model, chips=" ".join(CHIPS), chip=chip, pair=f"{chip} {other}"))
    yield from map(shlex.split, OWN)
    if find_spec("transformers"):
        yield shlex.split("compare hf:own --config ./own.json h100_sxm5 l4")
    for words in map(list, list_examples()):
        if words[0] not in WRITING and words[:2] != ["db", "export"] and WHOLE_LEDGER not in words:
            yield words


class _Kept(io.BytesIO):
    """Byte buffer that can be read after its writer has closed it."""

    def close(self) -> None:
        """Keep the bytes."""


def ask(words: list[str]) -> dict[str, Any]:
    """Return the exit code and stderr of a command, and its answer as JSON, CSV and the screen, where it has these."""
    code, screen, told = say(words)
    answer: dict[str, Any] = {"code": code, "screen": screen.splitlines(), "stderr": told.splitlines()}
    for name in ("json", "csv"):
        code, text, _ = say([*words, "--format", name])
        if code != USAGE:
            answer[name] = json.loads(text) if name == "json" and not code else text.splitlines()
    return answer


def say(words: list[str]) -> tuple[int, str, str]:
    """Return the exit code of a command, and what it prints to stdout and stderr."""
    told, told_bytes = io.StringIO(), _Kept()
    out = io.TextIOWrapper(told_bytes, encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = run(words)
    with contextlib.suppress(ValueError):
        out.flush()
    return code, told_bytes.getvalue().decode(errors="replace"), told.getvalue()


def freeze(folder: Path, only: tuple[str, ...]) -> None:
    """Write the answer of each command to a folder; `only` are the first words of the commands to run, or empty."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        os.environ |= {"JOULEMAP_DB": str(Path(place) / "frozen.duckdb"), "COLUMNS": "80"}
        Path("own.py").write_text(MODULE)
        Path("own.json").write_text(json.dumps(CONFIGURATION))
        chip = re.sub(r"^id = .*$", 'id = "own_chip"', (DATA / "hardware" / "l4.toml").read_text(), flags=re.MULTILINE)
        Path("own_chip.toml").write_text(re.sub(r"^aliases = .*$", "aliases = []", chip, flags=re.MULTILINE))
        for index, words in enumerate(list_questions()):
            if only and words[0] not in only:
                continue
            write(folder / f"{index:03} {words[0]}.json", {"question": shlex.join(words), **ask(words)}, place)
        if only and "query" not in only:
            return
        connection = connect(Path(os.environ["JOULEMAP_DB"]), is_reading=True)
        values, _ = choose(connection)
        connection.close()
        for query in list_queries():
            given = fill(query, values)
            words = ["query", "run", query.title]
            for name, value in given.items():
                words += ["-p", f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"]
            write(folder / f"query {query.title}.json", {"question": shlex.join(words), **ask(words)}, place)


def write(path: Path, answer: dict[str, Any], place: str) -> None:
    """Write one answer, with the path of its database's folder removed."""
    text = json.dumps(answer, indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text.replace(place, "PLACE"), encoding="utf-8")
    print(path.name, answer["code"], flush=True)


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path of each value of a document."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from walk(one, f"{path}.{name}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from walk(one, f"{path}[{index}]")
    else:
        yield path, value


def is_same(one: object, other: object) -> bool:
    """Return whether two values are equal, numbers within `SAME`."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME, abs_tol=0.0)
    return one == other


def compare(old: Path, new: Path) -> int:
    """Print the differences of two folders, similar paths together with an example; return the number of differing
    values.
    """
    missing = object()
    count = 0
    for name in sorted({path.name for folder in (old, new) for path in folder.glob("*.json")}):
        if not (old / name).exists() or not (new / name).exists():
            print(f"{name}: only in {old if (old / name).exists() else new}")
            count += 1
            continue
        before, after = (dict(walk(json.loads((folder / name).read_text()))) for folder in (old, new))
        found: dict[str, list[str]] = defaultdict(list)
        for path in dict.fromkeys([*before, *after]):
            one, other = before.get(path, missing), after.get(path, missing)
            if not is_same(one, other):
                shown = ["absent" if value is missing else repr(value)[:150] for value in (one, other)]
                found[re.sub(r"\[\d+\]", "[]", path)].append(" -> ".join(shown))
        count += sum(map(len, found.values()))
        if found:
            print(f"{name}: {before.get('.question')}")
        for path, examples in found.items():
            print(f"  {len(examples):>5} {path}: {examples[0]}")
    print(f"{count} differences")
    return count


def main() -> None:
    """Write the answers, or compare two folders of answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", type=lambda text: tuple(text.split(",")), default=(), metavar="WORDS")
    given = parser.parse_args()
    folders = [Path(os.path.abspath(folder)) for folder in given.folders]
    if len(folders) == 1:
        freeze(folders[0], given.only)
    else:
        compare(*folders)


if __name__ == "__main__":
    main()
