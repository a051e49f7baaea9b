"""Questions of the page: its state as JSON in, an answer as JSON out.

    {"view": "compare", "model": "resnet50", …} ─► predictions ─► sentences, texts of numbers, places on axes

The page draws an answer and computes nothing. The texts of a state come from a form or a link, so each is checked here,
and an error is one line of the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from joulemap.bundle import load_chips, open_zoo
from joulemap.catalog import ZOO
from joulemap.physics import PRECISION_BYTES, RUNTIME_NAMES
from joulemap.system import JoulemapError, UsageError
from joulemap.wing.decoder import GGUF
from joulemap.wing.tab import show
from joulemap.wing.tab.compared import compare, explain
from joulemap.wing.tab.renderer import LONGEST, find_chips, spell_names
from joulemap.wing.tab.served import WEIGHTS, serve
from joulemap.wing.tab.state import DEFAULTS, Answer, State

VIEWS: Final[Mapping[str, Callable[[State], Answer]]] = {"compare": compare, "why": explain, "gpu": serve}
"""View -> function that answers it."""

OTHER_FILES: Final = {".onnx": "joulemap[onnx]", ".tflite": "joulemap", ".pt2": "joulemap[torch]"}
"""Suffix of a model file that the page cannot read -> package that can."""


def answer(text: str) -> str:
    """Return the answer to a state; an error of the state is its line `error`."""
    try:
        given = json.loads(text)
        view = str(given.get("view", next(iter(VIEWS))))
        if view not in VIEWS:
            raise UsageError(f"the page has no view {view[:40]!r}, it has {', '.join(VIEWS)}")
        return _write(VIEWS[view]({name: str(given.get(name, usual)) for name, usual in DEFAULTS[view].items()}))
    except JoulemapError as error:
        return _write({"error": str(error)})


def list_choices() -> str:
    """Return what the form of the page offers."""
    chips = load_chips()
    return _write(
        {
            "chips": [[name, chips.find(name).name] for name in sorted(chips.ids)],
            "models": sorted(open_zoo(ZOO).models),
            "precisions": list(PRECISION_BYTES),
            "runtimes": list(RUNTIME_NAMES),
            "weights": WEIGHTS,
        }
    )


def match_renderer(renderer: str) -> str:
    """Return the chip of a GPU that WebGL names, and a line about it; no chip without a name or a match."""
    printed = renderer[:LONGEST].strip()
    ids = find_chips(printed) if printed else []
    printed = next(spell_names(printed))
    if not printed:
        line = show.HIDDEN
    elif not ids:
        line = show.UNMATCHED(printed=printed)
    else:
        line = show.MATCHED(printed=printed, chip=ids[0]) if len(ids) == 1 else show.SEVERAL(printed=printed, chips=ids)
    return _write({"chip": ids[0] if ids else "", "line": line})


def check_file(name: str) -> str:
    """Return the reason why the page cannot read a file of this name; an empty line for a GGUF file."""
    suffix = f".{name.rpartition('.')[2].lower()}"
    line = "" if suffix == GGUF else show.UNKNOWN_FILE(file=name)
    if suffix in OTHER_FILES:
        line = show.OTHER_FILE(file=name, package=OTHER_FILES[suffix])
    return _write({"line": line})


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
