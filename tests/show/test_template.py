from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import joulemap
from joulemap.show.present.template import INTERVAL, Template, format_value
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Row:
    latency_s: float
    share_fraction: float
    probability: float | None
    runner_up: str = ""


ROW = Row(latency_s=0.0025, share_fraction=0.125, probability=None)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.0025, "s", "2.5 ms"),
        (1.2e-6, "+J", "+1.2 \N{MICRO SIGN}J"),
        (3.0e9, "B/s", "3 GB/s"),
        (0.125, "%", "12.5 %"),
        (0.7, "set %", "70 %"),
        (0.934, "chance", "93 %"),
        (1.256, "x", "1.26x"),
        (1, "n subgraph", "1 subgraph"),
        (1200, "n query|queries", "1,200 queries"),
        (("a", "b", "c"), "and", "a, b and c"),
        (("a", "b", "c"), "few", "a, b and c"),
        (("a", "b", "c", "d", "e"), "few", "a, b, c and 2 more"),
        (("1 J", "2 J"), "range", "1\N{EN DASH}2 J"),
        ((0.036, 0.4), "interval J", "36 mJ (24\N{EN DASH}54)"),
        ((0.036, None), "interval J", "36 mJ"),
        ((0.0009, 0.4), "interval J", "900 \N{MICRO SIGN}J (600 \N{MICRO SIGN}J\N{EN DASH}1.3 mJ)"),
        (1340.0, "~", "1.34k"),
        ("l4", "", "l4"),
    ],
)
def test_a_value_has_the_form_that_its_place_names(value: object, form: str, text: str) -> None:
    assert format_value(value, form) == text


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(ValueError, match="no such format"):
        format_value(1.0, "no such format")


def test_places_are_filled_by_the_row_and_by_what_is_given() -> None:
    assert Template("{hardware} takes {latency_s:s}")(ROW, hardware="l4") == "l4 takes 2.5 ms"
    assert Template("{row.share_fraction:%} of it")(row=ROW) == "12.5 % of it"
    with pytest.raises(AttributeError):
        Template("{missing}")(ROW)


def test_an_optional_part_needs_all_of_its_values() -> None:
    text = Template("{hardware}[ ({probability:chance} sure)][, ahead of {runner_up}]")
    assert text(ROW, hardware="l4") == "l4"
    assert text(ROW, hardware="l4", probability=0.5, runner_up="t4") == "l4 (50 % sure), ahead of t4"


def test_a_value_with_spaces_is_one_word_of_a_command() -> None:
    words = Template("explain {model} {pair} --metric energy [{more}]")
    assert words.words(model="a b", pair="l4[tdp=60 W]", more="") == [
        "explain", "a b", "l4[tdp=60 W]", "--metric", "energy",
    ]  # fmt: skip


def test_a_list_becomes_the_words_of_a_command_and_an_option_is_left_out_with_its_name() -> None:
    words = Template("analyze {model} [--runtime {runtime}] {repeated}")
    assert words.words(model="m", runtime="", repeated=["--db", "a b"]) == ["analyze", "m", "--db", "a b"]
    assert words.words(model="m", runtime="eager", repeated=()) == ["analyze", "m", "--runtime", "eager"]


def _list_templates() -> Iterator[tuple[str, Template]]:
    for module in pkgutil.walk_packages(joulemap.__path__, "joulemap."):
        if module.name.endswith(".text") or ".answer." in module.name:
            for name, value in vars(importlib.import_module(module.name)).items():
                values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
                for one in values:
                    if isinstance(one, Template):
                        yield f"{module.name}.{name}", one


COLUMNS = " | "
"""Separator of the columns of a table, which are no sentence."""


def test_every_template_of_an_answer_has_known_formats_and_short_sentences() -> None:
    kinds = {"%", "set %", "chance", "odds", "x", "±", "plain", "#", "and", "or", "few", "list", "range", "", "~"}
    for name, template in _list_templates():
        for _, form in template.slots:
            example: object = ("a", "b") if form in ("and", "or", "few", "list", "range") else 1.0 if form else "a"
            example = (1.0, 0.1) if form.startswith(INTERVAL) else example
            assert form in kinds or format_value(1 if form.startswith("n ") else example, form), name
        for sentence in template.text.split(". ") if COLUMNS not in template.text else ():
            assert len(sentence.split()) <= 40, name


def test_the_slots_that_are_always_shown_are_required() -> None:
    assert Template("{fresh:n row}[, {known} known]").required == {"fresh"}
