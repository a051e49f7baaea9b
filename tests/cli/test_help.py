"""`--help` fits a screen, `--help-all` has every option, and both are plain sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from command import run_here
from example import list_examples
from joulemap.cli import overview
from joulemap.cli.command import command, option
from joulemap.cli.overview import COMMANDS, GROUPS, find_commands, list_commands, list_groups, list_start
from joulemap.system.wing import Command, Wing
from tools.manual import Manual, read_manual

LINES: Final = 52
"""Maximum lines of `--help` on a terminal of 80 columns."""

COLUMNS: Final = 80

SCREEN: Final = 45
"""Maximum lines of `joulemap --help`."""

LISTED: Final = 24
"""Maximum commands that `joulemap --help` lists."""

INDENT: Final = 2

ALL: Final = "--help all"

MOST_OPTIONS: Final = 50
"""Maximum options of one command."""

ALL_OPTIONS: Final = 900
"""Maximum options of all commands together."""

WORDS: Final = 25
"""Maximum words of a sentence in help."""

LENGTH: Final = 18
"""Maximum words of an option's description without its default."""

VERBS: Final = (
    "Break", "Check", "Choose", "Compare", "Compute", "Contrast", "Copy", "Draw", "Explain", "Export", "Find", "Fit",
    "Import", "Inspect", "List", "Measure", "Place", "Predict", "Print", "Rank", "Recommend", "Run", "Score", "Search",
    "Serve", "Show", "Update", "Write",
)  # fmt: skip
"""Verbs that begin the description of a command."""

FRAGMENT: Final = re.compile(r"(?:Of|That|What|Whether|Those|So many|How|Where|Which|In place)\b")

SOURCE: Final = Path(__file__).parents[2] / "src" / "joulemap"


def walk(manual: Manual) -> Iterator[Manual]:
    yield manual
    for inner in manual.commands:
        yield from walk(inner)


@cache
def list_manuals() -> tuple[Manual, ...]:
    return tuple(one for name in list_commands() for one in walk(read_manual(name)))


def list_leaves() -> list[Manual]:
    return [one for one in list_manuals() if not one.commands]


def print_help(path: str, option: str, folder: Path) -> str:
    done = run_here([*path.split()[1:], *option.split()], folder, {"COLUMNS": str(COLUMNS)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def count_lines(text: str) -> int:
    """Return the lines of a text on a terminal, which wraps a longer line."""
    return sum(max(1, -(-len(line) // COLUMNS)) for line in text.splitlines())


def split_sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!;:])(?<!e\.g\.)\s+", re.sub(r" \[[^\]]*\]$", "", text))


def test_help_of_each_command_fits_a_screen(tmp_path: Path) -> None:
    paths = ["joulemap", *(one.path for one in list_manuals())]
    lines = {path: count_lines(print_help(path, "--help", tmp_path)) for path in paths}
    assert {path: count for path, count in lines.items() if count > LINES} == {}


def list_entries(text: str) -> list[tuple[str, str]]:
    """Return (group title, command) of each line of a list of commands, in order."""
    entries, title = [], ""
    for line in text.partition("\nUsage:")[0].splitlines():
        title = line.removesuffix(":") if line[:1].strip() else title
        if match := re.match(r" +([a-z_]+) +[A-Z]", line):
            entries.append((title, match[1]))
    return entries


def test_the_first_screen_says_what_to_type_and_lists_commands_by_purpose(tmp_path: Path) -> None:
    text = print_help("joulemap", "--help", tmp_path)
    assert text == run_here([], tmp_path, {"COLUMNS": str(COLUMNS)}).stdout
    lines, start = text.splitlines(), list_start()
    assert len(lines) <= SCREEN and 2 <= len(start) <= 4
    assert lines[0].endswith(".") and lines[1:3] == ["", "Start here:"]
    assert [line[INDENT:].partition("  ")[2].strip() for line in lines[3 : 3 + len(start)]] == list(start.values())
    assert {one.line for one in list_examples()} >= set(start.values())
    listed = list_entries(text)
    assert len(listed) == len(set(listed)) <= LISTED
    titles = list(dict.fromkeys(title for title, _ in listed))
    assert titles == [title for title in GROUPS.values() if title in titles]


def test_help_all_lists_every_command_once_and_merged_ones_beside_another(tmp_path: Path) -> None:
    text = print_help("joulemap", ALL, tmp_path)
    listed = list_entries(text)
    assert [name for _, name in listed] == list_commands()
    brief = list_entries(print_help("joulemap", "--help", tmp_path))
    assert [one for one in listed if one in set(brief)] == brief
    merged = {name: one.merged for name, one in find_commands().items() if one.merged}
    assert set(re.findall(r"^    ([a-z_]+) +[A-Z]", text, re.MULTILINE)) == set(merged)
    titles = {name: title for title, name in listed}
    names = list(titles)
    for name, head in merged.items():
        assert titles[name] == titles[head]
        between = names[names.index(head) + 1 : names.index(name)]
        assert [one for one in between if merged.get(one) != head] == []
    assert "Exit codes:" in text and "--version" in text


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("path", ["joulemap", "joulemap compare", "joulemap hardware"])
@pytest.mark.parametrize("option", ["--help", ALL])
def test_no_line_of_help_is_wider_than_the_terminal(path: str, option: str, columns: int, tmp_path: Path) -> None:
    text = run_here([*path.split()[1:], *option.split()], tmp_path, {"COLUMNS": str(columns)}).stdout
    wide = [line for line in text.splitlines() if len(line) > columns]
    commands = [line for line in wide if " joulemap " in line or line.startswith("    --")]
    assert wide == (commands if columns < COLUMNS else [])  # a long word of a command stays whole


def test_every_module_with_a_command_of_its_name_is_registered() -> None:
    modules = {
        path.stem
        for path in SOURCE.glob("cli/*.py")
        if re.search(rf"^(?:@command\ndef {path.stem}|app = group)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert modules == set(COMMANDS)


def test_a_command_that_states_no_known_place_is_listed_last(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Command] = {
        "placed": Command("toy.placed", "choose", is_first=True),
        "plain": Command("toy.plain"),
        "unknown": Command("toy.unknown", "no such group"),  # type: ignore[arg-type]
        "beside": Command("toy.beside", merged="compare"),
        "orphan": Command("toy.orphan", merged="no such command"),
        "chained": Command("toy.chained", merged="beside"),
        "itself": Command("toy.itself", merged="itself"),
    }
    monkeypatch.setattr(overview, "list_wings", lambda: (Wing(name="toy", commands=given),))
    find_commands.cache_clear()
    try:
        groups, brief = list_groups(), list_groups(is_whole=False)
    finally:
        find_commands.cache_clear()
    chosen = groups["Choose hardware"]
    assert chosen[:2] == ["placed", "compare"] and chosen.index("beside") < chosen.index("recommend")
    assert groups["Other commands"] == ["plain", "unknown", "orphan", "chained", "itself"] == brief["Other commands"]
    assert list(groups)[-1] == "Other commands"
    assert "beside" not in brief["Choose hardware"]


def test_help_all_lists_every_option_and_every_example(tmp_path: Path) -> None:
    for manual in list_leaves():
        text = print_help(manual.path, ALL, tmp_path)
        listed = {
            word for line in re.findall(r"^  (-.*)$", text, re.MULTILINE) for word in re.findall(r"--?[\w-]+", line)
        }
        options = {name for one in manual.options for name in re.findall(r"--?[\w-]+", one.names)}
        assert options - listed == set(), manual.path
        assert "--help" in listed, manual.path
        joined = re.sub(r" \\\n +", " ", text)
        assert [line for line in manual.examples if f"  {line}\n" not in joined] == [], manual.path


def test_examples_of_help_are_those_that_are_run() -> None:
    ran = {one.line for one in list_examples()}
    shown = {line for one in list_manuals() for line in one.examples if line.startswith("joulemap ")}
    assert shown - ran == set()


@pytest.mark.parametrize("manual", list_manuals(), ids=lambda one: one.path)
def test_descriptions_are_short_sentences_that_begin_with_a_verb(manual: Manual) -> None:
    first = manual.paragraphs[0]
    assert first.split()[0].rstrip(",") in VERBS
    assert first.endswith(".")
    parameters = (*manual.arguments, *manual.options)
    assert [one.names for one in parameters if not re.match(r"[A-Z~].*\.(?: \[.*\])?$", one.meaning)] == []
    texts = [*manual.paragraphs, *(one.meaning for one in parameters)]
    sentences = [sentence for text in texts for sentence in split_sentences(text)]
    assert [one for one in sentences if len(one.split()) > WORDS] == []
    lengths = {one.names: len(re.sub(r" One of: .*| \[[^\]]*\]$", "", one.meaning).split()) for one in parameters}
    assert {name: count for name, count in lengths.items() if count > LENGTH} == {}


@pytest.mark.parametrize(
    ("least", "most", "word", "bounds"),
    [
        (1, None, "0", "x>=1"),
        (None, 4, "5", "x<=4"),
        (1, 4, "5", "1<=x<=4"),
        (1, 4, "1_0", None),
        (1, 4, "٣", None),
        (1, 4, "3.0", None),
        (1, 4, "4", ""),
        (0.5, None, "5e-1", ""),
        (0.5, None, "nan", None),
        (0.5, None, "0.4", "x>=0.5"),
    ],
)
def test_a_number_is_read_strictly_and_within_its_range(
    least: float | None, most: float | None, word: str, bounds: str | None
) -> None:
    import typer

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    kind = float if isinstance(least, float) else int

    def count(number: Any = option(3, min=least, max=most)) -> Any:
        return number

    count.__annotations__["number"] = kind
    app.command()(command(count))
    if bounds == "":
        assert app(["--number", word], standalone_mode=False) == kind(word.replace("5e-1", "0.5"))
        return
    with pytest.raises(typer.BadParameter, match=re.escape(bounds or repr(word))):
        app(["--number", word], standalone_mode=False)


def list_docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a file, those of fields and constants included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def test_docstrings_of_the_command_line_do_not_begin_with_a_fragment() -> None:
    options = [path for name in ("command", "option") for path in SOURCE.glob(f"wing/*/*{name}.py")]
    paths = [*SOURCE.glob("cli/**/*.py"), *options]
    assert [(path.name, text) for path in paths for text in list_docstrings(path) if FRAGMENT.match(text)] == []


def test_no_command_has_more_options_than_a_person_can_read() -> None:
    """What a person says once belongs to `joulemap.toml`, what belongs to the program is listed once."""
    counts = {one.path: len(one.options) for one in list_leaves()}
    assert {path: count for path, count in counts.items() if count > MOST_OPTIONS} == {}
    assert sum(counts.values()) <= ALL_OPTIONS
