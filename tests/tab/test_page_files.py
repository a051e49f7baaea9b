"""The page as files: complete, without an address of others, and with answers to draw before Python is there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from command import run_here
from gguf_file import llama_3_1_8b, write_gguf
from joulemap.bundle.version import PACKED, STAMP
from joulemap.system.errors import CatalogueError, UsageError
from joulemap.wing.tab import browser, reply, site as making
from joulemap.wing.tab.site import CDN, NEEDED, write_site
from joulemap.wing.tab.state import DEFAULTS
from pyodide import pretend

pytestmark = pytest.mark.slow  # each test needs a page, which takes seconds

ADDRESS = re.compile(r"(?:https?:|wss?:)?//[\w.-]+\.\w+[^\s\"'`]*")
NAMESPACE = "http://www.w3.org/2000/svg"


@pytest.fixture(scope="module")
def recorded() -> Iterator[None]:
    """Find what the page needs in one process for all tests, because each takes seconds."""
    with patch.object(making, "_record", cache(making._record)):
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, recorded: None) -> Path:
    """A page with a Pyodide of its own."""
    folder = tmp_path_factory.mktemp("site")
    done = run_here(["page", "site", "--pyodide", str(pretend(folder / "pyodide"))], folder, {})
    assert done.returncode == 0, done.stderr
    assert "python -m http.server --directory site" in done.stdout
    return folder / "site"


@pytest.fixture(scope="module")
def page(site: Path) -> str:
    return (site / "index.html").read_text(encoding="utf-8")


def read_static(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="static">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    static: dict[str, Any] = json.loads(found[1])
    return static


def test_all_files_are_there(site: Path) -> None:
    names = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    own = {"index.html", "page.css", "page.js", "worker.js", "choices.json", "joulemap.zip"}
    wheel = "pyodide/numpy-2.0.2-cp312-none-any.whl"
    assert names - {f"pyodide/{name}" for name in NEEDED} == {*own, wheel}
    with zipfile.ZipFile(site / wheel) as kept:
        assert kept.namelist() == ["numpy/__init__.py", "numpy/lib/a.so"]


def test_nobody_else_is_asked(site: Path, page: str) -> None:
    """Neither in the text of any file nor by the policy that browsers enforce."""
    for name in ("index.html", "page.css", "page.js", "worker.js", "choices.json"):
        addresses = set(ADDRESS.findall((site / name).read_text(encoding="utf-8"))) - {NAMESPACE}
        assert addresses == set(), name
    policy = dict(one.split(" ", 1) for one in re.findall(r'Policy" content="([^"]*)"', page)[0].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["script-src"] == "'self' blob: 'wasm-unsafe-eval'"
    assert "unsafe-inline" not in str(policy)
    assert not re.search(r"<script(?! src| type=\"application/json\")|\son\w+=|style=\"", page)


def test_without_a_folder_python_comes_from_its_cdn_alone(tmp_path: Path, recorded: None) -> None:
    write_site(tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    host = CDN.partition("/pyodide/")[0]
    assert {one.rstrip(";") for one in ADDRESS.findall(page)} == {CDN, host}
    assert f"connect-src 'self' {host};" in page
    assert f'data-pyodide="{CDN}" data-numpy=""' in page
    assert not (tmp_path / "site" / "pyodide").exists()


def test_static_answers_are_those_of_python(page: str) -> None:
    static = read_static(page)
    assert static["defaults"] == DEFAULTS
    assert [state["view"] for state, _ in static["answers"][: len(DEFAULTS)]] == list(DEFAULTS)
    for state, answer in static["answers"]:
        assert "error" not in answer
        assert answer == json.loads(reply.answer(json.dumps(state)))


def test_fields_of_the_page_are_those_of_python(site: Path, page: str) -> None:
    script = (site / "page.js").read_text(encoding="utf-8")
    (fields,) = re.findall(r"const FIELDS = \{(.*?)\};", script, re.DOTALL)
    listed = {name: re.findall(r'"(\w+)"', names) for name, names in re.findall(r"(\w+): \[(.*?)\]", fields, re.DOTALL)}
    assert listed == {view: list(usual) for view, usual in DEFAULTS.items()}
    assert re.findall(r'data-view="(\w+)"', page) == list(DEFAULTS)


PROGRAM = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
sys.path.insert(1, sys.argv[3])
import browser
sys.path.pop(1)
sys.meta_path.insert(0, browser.Absent())
from joulemap.wing.tab import reply
import joulemap
assert Path(joulemap.__file__).is_relative_to(sys.argv[1]), joulemap.__file__
states = json.loads(sys.argv[2])
answers = [json.loads(reply.answer(json.dumps(state))) for state in states]
found = reply.match_renderer("Apple M1 Pro"), reply.check_file("a.onnx"), json.loads(reply.list_choices())
print(json.dumps([answers, *found]))
"""


@pytest.mark.slow
def test_the_archive_answers_alone(site: Path, tmp_path: Path) -> None:
    """All that the page imports and reads is in it, and packages that a browser lacks are not needed."""
    with zipfile.ZipFile(site / "joulemap.zip") as archive:
        archive.extractall(tmp_path / "own")
    gguf = write_gguf(tmp_path / "own.gguf", *llama_3_1_8b())
    states = [
        *({"view": view} for view in DEFAULTS),
        *browser.ASKED,
        {"view": "gpu", "file": str(gguf)},
        {"view": "gpu", "file": str(site / "index.html") + ".gguf"},
        {"model": "attention(tokens=512,heads=8,width=64)", "chips": "l4,hailo_8", "precision": "fp16"},
        {"model": "bert-base-uncased", "chips": "H100, 4090, tpu_v4", "precision": "bf16", "batch": "7"},
        {"model": "resnet50", "chips": "h200_sxm,coral_edge_tpu,kpu_t256,mi300x", "runtime": "graph"},
        {"view": "gpu", "chip": "apple m4 max", "weights": "q8_0"},
        {"view": "gpu", "chip": "rtx_4090", "weights": "q99"},
        {"view": "gpu", "chip": "rtx 4091"},
    ]
    copy = tmp_path / "finder"
    copy.mkdir()
    (copy / "browser.py").write_bytes(Path(browser.__file__).read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, str(tmp_path / "own"), json.dumps(states), str(copy)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    answers, renderer, file, choices = json.loads(done.stdout)
    for state, answer in zip(states, answers, strict=True):
        assert answer == json.loads(reply.answer(json.dumps(state))), state
    assert renderer == reply.match_renderer("Apple M1 Pro")
    assert file == reply.check_file("a.onnx")
    assert (
        choices == json.loads(reply.list_choices()) == json.loads((site / "choices.json").read_text(encoding="utf-8"))
    )


@pytest.mark.slow
def test_the_archive_is_small_and_the_same_each_time(site: Path, tmp_path: Path) -> None:
    first = (site / "joulemap.zip").read_bytes()
    write_site(tmp_path / "again")
    assert (tmp_path / "again" / "joulemap.zip").read_bytes() == first
    own = sum(len((site / name).read_bytes()) for name in ("joulemap.zip", "index.html", "choices.json", "page.js"))
    assert own < 1_850_000
    with zipfile.ZipFile(site / "joulemap.zip") as archive:
        assert not [name for name in archive.namelist() if "/store/" in name or "/cli/" in name]


@pytest.mark.slow
def test_the_page_needs_the_same_each_time() -> None:
    assert making._record() == making._record()


def test_files_of_others_are_kept(tmp_path: Path, recorded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_pack", lambda found: b"")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    with pytest.raises(UsageError, match=r"index\.html"):
        write_site(folder)
    assert (folder / "index.html").read_text() == "mine"
    (folder / "index.html").unlink()
    write_site(folder)
    assert "joulemap" in (folder / "index.html").read_text(encoding="utf-8")
    write_site(folder)  # its own files are replaced


def test_a_folder_without_pyodide_is_refused(tmp_path: Path) -> None:
    folder = pretend(tmp_path / "pyodide")
    next(folder.glob("numpy-*")).unlink()
    done = run_here(["page", "site", "--pyodide", "pyodide"], tmp_path, {})
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "has no numpy-*.whl" in done.stderr
    assert not (tmp_path / "site").exists()


def test_no_page_is_made_of_stale_chips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulemap.bundle.version.STAMP", tmp_path / STAMP.name)
    with pytest.raises(CatalogueError, match="make bundle"):
        write_site(tmp_path / "site")
    assert not PACKED.exists()
