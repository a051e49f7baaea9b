"""Files that the page needs, found by answering its questions as a browser would.

Run as a program, this prints JSON: the modules that were imported and the data files that were read, as paths within
the package, with answers for the page to show before Python is there. Packages that a browser lacks cannot be imported
here either.
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = Path(__file__).parents[2]

PRESENT: Final = frozenset(("joulemap", "numpy", "attr", "attrs"))
"""Packages of a browser, besides the standard library."""

MISSING: Final = frozenset(("fcntl",))
"""Modules of the standard library that a browser lacks, and in whose place joulemap imports others."""

PREPARED: Final = ("resnet50", "resnet18", "mobilenet_v2", "vit_b_16", "yolov8n", "bert-base-uncased")
"""Models whose comparison of the default chips is in the page."""

ASKED: Final[tuple[dict[str, str], ...]] = (
    {"view": "compare", "model": "gemm(m=8,n=4096,k=4096)", "chips": "l4,no_such_chip", "precision": "bf16"},
    {"view": "compare", "model": "no_such_model"},
    {"view": "compare", "chips": "hailo_8", "precision": "fp32"},
    {"view": "why", "chips": "l4"},
    {"view": "gpu", "power": "80", "bandwidth": "120"},
    {"view": "gpu", "file": "no_such_file.gguf"},
    {"view": "other"},
)
"""Further states whose answers need other modules: single operators, refusals, unknown names, changed chips, files."""


class Absent:
    """Finder that refuses packages which a browser lacks."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Raise ModuleNotFoundError for such a package."""
        top = name.partition(".")[0]
        if top in PRESENT or (top in sys.stdlib_module_names and top not in MISSING):
            return None
        raise ModuleNotFoundError(f"a browser has no {top}", name=top)


def list_chip_states() -> list[dict[str, str]]:
    """Return states that ask about one chip of each vendor and class, because some of them have data of their own."""
    from joulemap.bundle import load_chips
    from joulemap.wing.tab.state import MODELS

    chips = load_chips()
    firsts = {(one.vendor, one.architecture): one.id for one in map(chips.find, sorted(chips.ids, reverse=True))}
    served = [{"view": "gpu", "chip": name, "models": MODELS[0]} for name in firsts.values()]
    return [{"view": "compare", "chips": ",".join(firsts.values())}, *served]


def record() -> dict[str, Any]:
    """Return paths of modules and of data, and prepared answers as pairs of a state and its answer."""
    from joulemap.bundle import bundle_version

    bundle_version()  # before anything is recorded, because it reads the whole catalogue
    read: set[str] = set()

    def note(event: str, given: tuple[object, ...]) -> None:
        if event == "open" and isinstance(given[0], str | Path):
            read.add(str(given[0]))

    sys.addaudithook(note)
    from joulemap.wing.decoder import load_tables
    from joulemap.wing.tab import reply
    from joulemap.wing.tab.state import DEFAULTS

    states = [{"view": view, **usual} for view, usual in DEFAULTS.items()]
    states += [{**states[0], "model": name} for name in PREPARED[1:]]
    answers = [(state, json.loads(reply.answer(json.dumps(state)))) for state in states]
    for state in ASKED:
        reply.answer(json.dumps(state))
    for state in list_chip_states():
        reply.answer(json.dumps(state))
    reply.match_renderer("Apple M1 Pro")
    reply.check_file("model.onnx")
    load_tables()  # of names in a file of weights, which no state here has
    choices = json.loads(reply.list_choices())
    modules = {
        Path(one.__file__).relative_to(PACKAGE).as_posix()
        for name, one in sys.modules.items()
        if name.partition(".")[0] == "joulemap" and one.__file__
    }
    data = {
        path.relative_to(PACKAGE).as_posix()
        for path in map(Path, read)
        if path.is_relative_to(PACKAGE) and path.suffix not in (".py", ".pyc") and path.is_file()
    }
    doors = {f"generated/{Path(name).parent}.pyi" for name in modules if name.endswith("/__init__.py")}
    return {
        "modules": sorted(modules),
        "data": sorted(data | {name for name in doors if (PACKAGE / name).is_file()}),
        "defaults": DEFAULTS,
        "answers": answers,
        "choices": choices,
    }


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    print(json.dumps(record()))
