"""Build the wheel and the source archive: `make wheel`.

A wheel has what a checkout makes on first use: the rendered queries, the packed chips, and the database that a first
answer would take seconds to make. Two builds of one commit are equal byte for byte: times are that of the commit, or
`SOURCE_DATE_EPOCH`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from joulemap.store.template import SHIPPED
from tools import ROOT
from tools.bundle import main as make_bundle
from tools.pack import pack

EPOCH: Final = "SOURCE_DATE_EPOCH"
"""Environment variable with the time of a reproducible build. Source: reproducible-builds.org."""


def build(folder: Path) -> list[Path]:
    """Build a wheel and a source archive of the checkout into an empty folder; return the files.

    Raises CalledProcessError if a build fails.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environment = {**os.environ, EPOCH: read_time()}
    make_bundle()
    with _made_database(environment):
        for kind in ("wheel", "sdist"):
            command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
            subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    for wheel in folder.glob("*.whl"):
        squeeze(wheel)
    return sorted(folder.iterdir())


def read_time() -> str:
    """Return the time of a build in seconds since 1970: that of the environment, otherwise of the commit."""
    if given := os.environ.get(EPOCH):
        return given
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def _made_database(environment: dict[str, str]) -> Iterator[None]:
    """Keep the database of a first answer, and its index, in the package while this context lasts."""
    shutil.rmtree(SHIPPED, ignore_errors=True)
    own = {name: value for name, value in environment.items() if name != "JOULEMAP_HARDWARE"}
    own |= {"JOULEMAP_CACHE": str(SHIPPED), "JOULEMAP_DB": str(SHIPPED / "none.duckdb")}
    try:
        command = [sys.executable, "-m", "joulemap", "hardware", "list"]
        subprocess.run(command, check=True, env=own, stdout=subprocess.DEVNULL)
        (database,) = SHIPPED.glob("*.duckdb")
        pack(database)
        database.unlink()
        index = database.with_suffix(".json")
        noted = json.loads(index.read_text(encoding="utf-8"))
        index.write_text(json.dumps({**noted, "seen": []}), encoding="utf-8")
        yield
    finally:
        shutil.rmtree(SHIPPED, ignore_errors=True)


def squeeze(path: Path) -> None:
    """Compress the files of a wheel again, 2 % smaller, which takes half a minute."""
    import zopfli

    with zipfile.ZipFile(path) as old:
        members = [(one, old.read(one)) for one in old.infolist()]
    with zopfli.ZipFile(path, "w", zipfile.ZIP_DEFLATED, iterations=4) as new:
        for member, content in members:
            new.writestr(member, content, zipfile.ZIP_DEFLATED)


def main() -> None:
    """Build into the folder of the command line, and print each file with its size."""
    for path in build(Path(sys.argv[1])):
        print(f"{path.name} {path.stat().st_size / 1e3:,.0f} kB")


if __name__ == "__main__":
    main()
