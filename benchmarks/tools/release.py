"""Check that a release could be made: a part of `make release-check`.

One line per check, with what is missing. FOLDER is an environment with twine and cyclonedx-py; the wheel, the source
archive and the bill of materials (CycloneDX) are left in `build/wheel`.
"""

from __future__ import annotations

import filecmp
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tools import ROOT
from tools.wheel import EPOCH, build, read_time

BUILT: Final = ROOT / "build" / "wheel"

LICENSES: Final = ("LICENSE", "LICENSE.md", "LICENSE.txt")

MATERIALS: Final = "joulemap.cdx.json"
"""File name of the bill of materials, in CycloneDX's JSON."""


def read_project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
        return project


def check_version(version: str, citation: str, changes: str) -> str:
    """Return where CITATION.cff or CHANGELOG.md states another version, or no date; empty if they agree."""
    cited = re.search(r"^version: (.+)$", citation, re.MULTILINE)
    if cited is None or cited[1] != version:
        return f"CITATION.cff has version {cited[1] if cited else 'none'}, pyproject.toml {version}"
    newest = re.search(r"^## (\S+?)(?:, (.+))?$", changes, re.MULTILINE)
    if newest is None or newest[1] != version:
        return f"the first heading of CHANGELOG.md is {newest[1] if newest else 'missing'}, expected {version}"
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", newest[2] or ""):
        return f"CHANGELOG.md states no date of {version} (`## {version}, 2027-01-31`), but {newest[2] or 'nothing'}"
    return ""


def check_licence(folder: Path, project: dict[str, Any]) -> str:
    """Return what a licence lacks; empty if a file has it and the metadata name it."""
    if not any((folder / name).is_file() for name in LICENSES):
        return "the owner has not chosen one, so nothing may be published: CONTRIBUTING.md says where it goes"
    return "" if project.get("license") else 'pyproject.toml does not name it: `license = "…"`'


def _check_tree() -> str:
    changed = _run("git", "status", "--porcelain").splitlines()
    return f"{len(changed)} files differ from the commit, such as {changed[0][3:]}" if changed else ""


def _check_builds() -> str:
    """Build twice and return the file that differs; empty if all are equal byte for byte."""
    files = build(BUILT)
    with tempfile.TemporaryDirectory() as folder:
        again = build(Path(folder) / "again")
        names = [one.name for one in files]
        if names != [one.name for one in again]:
            return f"two builds have other files: {names}, {[one.name for one in again]}"
        differing = [one.name for one, other in zip(files, again, strict=True) if not filecmp.cmp(one, other, False)]
    return f"two builds of {', '.join(differing)} differ" if differing else ""


def _check_metadata(tools: Path) -> str:
    files = [str(one) for one in BUILT.iterdir() if one.suffix in (".whl", ".gz")]
    _run(str(tools / "bin" / "twine"), "--no-color", "check", "--strict", *files)
    return ""


def _write_materials(tools: Path) -> str:
    """List everything that an installation of the wheel brings along, with versions; return what is wrong."""
    (wheel,) = BUILT.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        _run(sys.executable, "-m", "venv", "--without-pip", folder)
        _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", str(wheel))
        about = ("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", "--output-reproducible")
        _run(str(tools / "bin" / "cyclonedx-py"), "environment", python, *about, "-o", str(BUILT / MATERIALS))
    return ""


def _check_wheel() -> str:
    (wheel,) = BUILT.glob("*.whl")
    _run(str(ROOT / ".ci" / "wheel"), str(wheel))
    return ""


def _run(*command: str) -> str:
    """Return the output of a program. Raises CalledProcessError if it fails."""
    environment = {**os.environ, EPOCH: read_time(), "PYTHON": sys.executable}
    done = subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.stdout


def list_checks(tools: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each check, and a function that returns what is wrong."""
    project = read_project()
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")]
    yield "tree", _check_tree
    yield "version", lambda: check_version(project["version"], *texts)
    yield "builds equal", _check_builds
    yield "metadata", lambda: _check_metadata(tools)
    yield "bill of materials", lambda: _write_materials(tools)
    yield "wheel alone", _check_wheel
    yield "licence", lambda: check_licence(ROOT, project)


def main() -> None:
    """Print one line per check; exit with 1 if one failed."""
    has_failed = False
    for name, check in list_checks(Path(sys.argv[1]).resolve()):
        try:
            wrong = check()
        except subprocess.CalledProcessError as error:
            told = (error.stderr or error.stdout or "").strip().splitlines()
            wrong = f"{Path(error.cmd[0]).name} failed: {told[-1] if told else f'exit {error.returncode}'}"
        print(f"{'NO' if wrong else 'ok':<3} {name}{f': {wrong}' if wrong else ''}", flush=True)
        has_failed = has_failed or bool(wrong)
    sys.exit(has_failed)


if __name__ == "__main__":
    main()
