"""Mutation test: share of small faults in formulas, SQL and options that the tests detect.

python benchmarks/mutation.py COVER [--seed N] [--count N] [--limit S] [--tests FOLDER] [--only N,...] [--record]

Each mutant is one change to one place of a copy of the tree, drawn by the seed: + for -, * for /, < for <=, AND for OR,
a number doubled, a NOT dropped, min for max. It is killed when a test fails. Tests that run its function are tried, the
cheapest first, up to --limit seconds of processor time; COVER lists them (--record writes it first, which takes an
hour). A query has no function, so tests whose file mentions its topic are tried. --tests tries another folder of tests
on the same mutants.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import attrs
import pytest

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = ("domain", "model", "fuse", "trace", "catalog", "calibrate", "store", "plan", "ask", "show", "cli")
SWAPS: Final[dict[type, type]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
WORDS: Final = {
    " + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ",
    " = ": " <> ", " AND ": " OR ", " OR ": " AND ", "NOT ": "", "min(": "max(", "max(": "min(", "sum(": "max(",
    "LEFT JOIN": "JOIN", " DESC": " ASC",
}  # fmt: skip
SQL_PLACE: Final = re.compile("|".join(map(re.escape, WORDS)) + r"|(?<![\w.$])\d+(?:\.\d+)?(?![\w.])")
SQL_SILENT: Final = re.compile(r"--[^\n]*|'[^']*'|BETWEEN .*? AND ", re.DOTALL)


@attrs.frozen(kw_only=True)
class Mutant:
    """One change to one file."""

    path: str
    line: int
    start: int
    """Line where its function begins, decorators included; 1 for a query."""
    at: tuple[int, int]
    """Bytes of the file that are replaced."""
    old: str
    new: str


def change(node: ast.AST) -> ast.expr | None:
    """Return the expression that replaces a node; None if the node is not mutated."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in SWAPS:
            return ast.BinOp(left, SWAPS[type(op)](), right)
        case ast.BoolOp(op, values):
            return ast.BoolOp(SWAPS[type(op)](), values)
        case ast.Compare(left, [op], right) if type(op) in SWAPS:
            return ast.Compare(left, [SWAPS[type(op)]()], right)
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            return ast.Constant(value * 2 or 1)
        case ast.Call(ast.Name("min" | "max" as name), arguments, keywords):
            return ast.Call(ast.Name("max" if name == "min" else "min"), arguments, keywords)
    return None


def mutate_python(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module; f-strings and code that runs only at import are not mutated."""
    text = path.read_text()
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        hidden = {id(inner) for one in ast.walk(function) if isinstance(one, ast.JoinedStr) for inner in ast.walk(one)}
        start = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        for node in (node for statement in function.body for node in ast.walk(statement)):
            new = None if id(node) in hidden else change(node)
            if new is None or not isinstance(node, ast.expr) or node.end_lineno is None:
                continue
            at = lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + (node.end_col_offset or 0)
            old = text.encode()[slice(*at)].decode()
            name = path.relative_to(ROOT).as_posix()
            yield Mutant(path=name, line=node.lineno, start=start, at=at, old=old, new=f"({ast.unparse(new)})")


def mutate_sql(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a query or of the schema."""
    text = path.read_text()
    audible = SQL_SILENT.sub(lambda found: " " * len(found[0]), text)
    for found in SQL_PLACE.finditer(audible):
        new = WORDS[found[0]] if found[0] in WORDS else str(float(found[0]) * 2 or 1).removesuffix(".0")
        at = len(text[: found.start()].encode()), len(text[: found.end()].encode())
        line = text.count("\n", 0, found.start()) + 1
        yield Mutant(path=path.relative_to(ROOT).as_posix(), line=line, start=1, at=at, old=found[0], new=new)


def draw(seed: int, count: int) -> list[Mutant]:
    """Return mutants of each of `ROOMS` and of SQL, which counts twice, in turn."""
    kinds = [[one for path in sorted((ROOT / "src/joulemap" / room).rglob("*.py")) for one in mutate_python(path)]
             for room in ROOMS]  # fmt: skip
    statements = [one for top in ("queries", "schemas") for path in sorted((ROOT / top).rglob("*.sql"))
                  for one in mutate_sql(path)]  # fmt: skip
    places = random.Random(seed)
    return [places.choice([*kinds, statements, statements][number % (len(kinds) + 2)]) for number in range(count)]


class Recorder:
    """Pytest plugin that records the functions and the processor seconds of each test, fixtures included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.functions: dict[str, list[str]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record one test."""
        seen = set()

        def see(frame: FrameType, event: str, _: object) -> None:
            if event == "call":
                seen.add(frame.f_code)

        start = time.process_time()
        sys.setprofile(see)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            self.seconds[item.nodeid] = time.process_time() - start
            source = f"{ROOT}/src"
            for code in (one for one in seen if one.co_filename.startswith(source)):
                place = f"{os.path.relpath(code.co_filename, ROOT)}:{code.co_firstlineno}"
                self.functions.setdefault(place, []).append(item.nodeid)


def choose(mutant: Mutant, cover: Mapping[str, Any], tests: Mapping[str, str], limit_s: float) -> list[str]:
    """Return the tests to try, the most promising first; `tests` holds the text of each test's file by its id."""
    places = cover["functions"]
    found = places.get(f"{mutant.path}:{mutant.line}") or places.get(f"{mutant.path}:{mutant.start}", ())
    topic = mutant.path.split("/")[1] if mutant.path.startswith("queries/") else "Workspace"
    if mutant.path.endswith(".sql"):
        found = [one for one, text in tests.items() if re.search(rf"\b{topic}\b", text)]
    seconds = cover["seconds"]
    ordered = sorted((one for one in found if one in tests), key=lambda one: (topic not in one, seconds.get(one, 0.2)))
    total = 0.0
    chosen: list[str] = []
    for one in ordered:
        total += seconds.get(one, 0.2)
        if total > limit_s:
            break
        chosen.append(one)
    return chosen


def render(tree: Path) -> bool:
    """Render the queries of a tree, as tests read them; return whether that succeeded."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'benchmarks'}"}
    command = [sys.executable, "-m", "tools.generate"]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False).returncode == 0


def attempt(mutant: Mutant, tree: Path, tests: Sequence[str], limit_s: float) -> str:
    """Return the test that kills a mutant, or an empty text; tests run in a child that has not imported joulemap."""
    path = tree / mutant.path
    whole = path.read_bytes()
    is_query = mutant.path.startswith("queries/")
    path.write_bytes(whole[: mutant.at[0]] + mutant.new.encode() + whole[mutant.at[1] :])
    if is_query and not render(tree):
        path.write_bytes(whole)
        render(tree)  # although nothing changed, because queries that are newer than what was rendered are refused
        return "rendering"
    said = tree / "said.txt"
    child = os.fork()
    if child == 0:
        os.chdir(tree)
        sys.path.insert(0, str(tree / "src"))
        os.environ["PYTHONPATH"] = str(tree / "src")
        resource.setrlimit(resource.RLIMIT_CPU, (int(4 * limit_s + 60), int(4 * limit_s + 60)))
        with said.open("w") as talk:
            os.dup2(talk.fileno(), 1)
            os.dup2(talk.fileno(), 2)
            options = ["-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
            os._exit(pytest.main([*options, *tests]))
    _, status = os.waitpid(child, 0)
    path.write_bytes(whole)
    if is_query:
        render(tree)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", said.read_text(), re.MULTILINE)
    return found[1] if found else f"exit {status}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cover", type=Path)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--tests", type=Path, default=ROOT / "tests")
    parser.add_argument("--only", type=lambda text: {int(one) for one in text.split(",")})
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    if asked.record:
        recorder = Recorder()
        pytest.main(["-q", "-p", "no:cacheprovider", str(ROOT / "tests")], plugins=[recorder])
        asked.cover.write_text(json.dumps({"seconds": recorder.seconds, "functions": recorder.functions}))
        return
    cover = json.loads(asked.cover.read_text())
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        files = (".gitignore", "Makefile", "README.md", "hatch_build.py", "pyproject.toml")
        for name in ("src", "queries", "schemas", "benchmarks", "docs", *files):
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
        shutil.copytree(asked.tests, tree / "tests")
        collected = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=-m 'not slow'"],
            cwd=tree, env={**os.environ, "PYTHONPATH": str(tree / "src")}, capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip
        names = [line for line in collected.splitlines() if "::" in line]
        tests = {name: (tree / name.split("::")[0]).read_text() for name in names}
        import torch, torchvision, torch.export, hypothesis, duckdb, typer  # noqa: E401, F401, I001  # the children's

        killed = 0
        mutants = [one for one in enumerate(draw(asked.seed, asked.count)) if not asked.only or one[0] in asked.only]
        for number, mutant in mutants:
            killer = attempt(mutant, tree, choose(mutant, cover, tests, asked.limit), asked.limit)
            killed += bool(killer)
            print(f"{number} {mutant.path}:{mutant.line}: {mutant.old!r} -> {mutant.new!r}: {killer or 'SURVIVED'}",
                  flush=True)  # fmt: skip
        print(f"{killed} of {len(mutants)} killed by {len(tests)} tests")


if __name__ == "__main__":
    main()
