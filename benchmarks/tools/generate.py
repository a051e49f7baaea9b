"""Write the generated code of the package: `make rows`, and every build of the package, where only attrs is installed.

    queries/ ──► generated/sql: plain SQL and headers ──► row types, in `generated` or in that folder of a wing
                                                      └─► stubs of public names, which name rows too

None of it is in the repository. Files of deleted queries and modules are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from joulemap.store.library import HEADERS, SHIPPED
from tools import GENERATED, PACKAGE
from tools.public import spell_doors, spell_stubs
from tools.query import spell_sql
from tools.row import spell_modules

HEAD = f'# {GENERATED}\n"""Code that the build writes from the headers of queries and the signatures of questions."""\n'
"""Text of the `__init__.py` of each folder of generated code."""


def write(files: Mapping[Path, str]) -> None:
    """Write the files, except those that have this text already, so that nothing that depends on them is outdated."""
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def main() -> None:
    """Write all generated code, and remove what is no longer generated."""
    write(spell_doors())
    sql = spell_sql()
    write(sql)
    HEADERS.touch()  # the time when the queries were last rendered
    modules = spell_modules()
    write(modules)
    stubs = spell_stubs()
    code = {**modules, **stubs}
    heads = {folder / "__init__.py": HEAD for folder in {path.parent for path in code}}
    write({**stubs, **heads})
    kept = {*sql, *code, *heads}
    for folder in (SHIPPED, *PACKAGE.glob("generated"), *PACKAGE.glob("wing/*/generated")):
        for path in folder.iterdir():
            if path.is_file() and path not in kept:
                path.unlink()


if __name__ == "__main__":
    main()
