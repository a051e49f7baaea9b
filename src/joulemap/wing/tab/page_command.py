"""`joulemap page`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli import emit_line
from joulemap.cli.command import command, option


@command
def page(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write to; it is made if it is missing.")],
    *,
    pyodide: Path | None = option(
        None,
        "Folder of Pyodide with its wheel of numpy, copied beside the page.",
        metavar="FOLDER",
        shown="from its CDN",
    ),
) -> None:
    """Write a static page that predicts in a browser, without an installation.

    Serve the folder with any web server and open it. Visitors compare chips, see why one needs less energy, and find
    what runs on their own GPU. All numbers come from this version of joulemap.

    \b
    joulemap page site
    joulemap page site --pyodide ./pyodide
    """
    from joulemap.wing.tab.site import write_site

    files = write_site(folder, pyodide)
    size = sum(one.stat().st_size for one in files)
    emit_line(
        f"wrote {len(files)} files of {size / 1e6:.1f} MB to {folder}: python -m http.server --directory {folder}"
    )
