"""Build the site: python -m tools.site FOLDER [--embed NAME]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from joulemap.system.errors import JoulemapError
from tools.site.build import build_site


def main() -> int:
    """Build the site and return the exit code: 1 if a page, a link, an anchor or a figure is broken."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description="docs/ as a site")
    parser.add_argument("folder", type=Path, help="made anew, with the site in it")
    parser.add_argument("--embed", default="", help="folder within the site that `joulemap page` is written to next")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    try:
        code = build_site(folder, embedded=arguments.embed)
    except JoulemapError as error:
        print(f"joulemap: {error}", file=sys.stderr)
        return error.exit_code
    if not code:
        print(f"open {folder / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
