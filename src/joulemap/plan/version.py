"""Versions of a model: the code of a file as it stands, or as a commit of its repository has it.

    REV:path/to/file.py:NAME     the path from the top of the repository, or ./ from this folder, as git takes it

A commit's files are laid out in a folder of their own, which is gone afterwards; the repository is only read. Every
version is traced, whatever is stored: code that a file imports from elsewhere in the tree may have changed unseen.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.plan.workload import Model, find_model, trace
from joulemap.system.draft import drafting
from joulemap.system.errors import ModelError, UsageError
from joulemap.system.record import frozen
from joulemap.system.resource import cache_folder, need_torch

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Talk

_FILE: Final = re.compile(r"(?P<path>.+\.py):\w+")
_REVISION: Final = re.compile(r"(?P<revision>[^:]+):(?P<rest>.+\.(?:py:\w+|pt2))")


@frozen(kw_only=True)
class _Commit:
    """A file of a model in a commit of the repository that this folder is in."""

    top: Path
    """Of the repository."""
    digest: str
    path: str
    """From the top of the repository, with what the file makes."""

    @property
    def label(self) -> str:
        """The name of the version, whatever its commit is called now."""
        return f"{self.digest[:12]}:{self.path}"


def find_version(name: str, settings: Settings, talk: Talk) -> Model:
    """Return a model at the one batch of settings, traced where it is code of a file or a commit.

    Raises as `find_model`, ModelError for a commit or a file in it that is not there, UsageError without git.
    """
    commit = _find_commit(name)
    here = _FILE.fullmatch(name)
    if commit is not None:
        need_torch(f"tracing {name}")
        with _laid_out(commit) as tree:
            try:
                return _trace(str(tree / commit.path), commit.label, settings, talk, tree)
            except ModelError as error:
                raise type(error)(str(error).replace(f"{tree}{os.sep}", f"{commit.digest[:12]}:")) from error
    if here is not None and Path(here["path"]).is_file():
        return _trace(name, name, settings, talk, _find_top(Path(here["path"]).resolve().parent))
    return find_model(name, settings, next(iter(settings.batch), None))


def _trace(path: str, label: str, settings: Settings, talk: Talk, tree: Path) -> Model:
    """Return a model of a file in a tree, known by what its trace found."""
    model = find_model(path, settings, next(iter(settings.batch), None))
    need_torch(f"tracing {label}")
    from joulemap.hub.held import digest_workload
    from joulemap.hub.package import importing

    with importing(tree, _find_top(Path.cwd())):
        found = attrs.evolve(trace(model, talk), model=label)
    request = attrs.evolve(model.request, model=label, content_digest=digest_workload(found))
    return Model(request=request, retrace=False, traced=attrs.evolve(found, key=request.key))


def _find_commit(name: str) -> _Commit | None:
    """Return what a name says of a commit; None for a name of another kind, or of a file that is there."""
    found = _REVISION.fullmatch(name)
    if found is None or Path(name.rpartition(":")[0]).exists() or found["revision"] in ("timm", "hf"):
        return None
    revision, rest, here = found["revision"], found["rest"], Path.cwd()
    try:
        digest = _git(here, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except ModelError as error:
        raise ModelError(
            f"there is no commit {revision!r} here ({error}); a shallow clone needs `git fetch`"
        ) from error
    if rest.startswith(("./", "../")):
        rest = os.path.normpath(os.path.join(_git(here, "rev-parse", "--show-prefix"), rest))
    file = rest.rpartition(":")[0] if ".py:" in rest else rest
    try:
        _git(here, "cat-file", "-e", f"{digest}:{file}")
    except ModelError as error:
        raise ModelError(
            f"commit {digest[:12]} ({revision}) has no file {file}: start at the top of the repository, or with ./"
        ) from error
    return _Commit(top=_find_top(here), digest=digest, path=rest)


@contextlib.contextmanager
def _laid_out(commit: _Commit) -> Iterator[Path]:
    """Give out a folder with all files of a commit."""
    folder = cache_folder().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with drafting(folder) as draft:
        tree = draft / "tree"
        tree.mkdir()
        index = {"GIT_INDEX_FILE": str(draft / "index")}
        _git(commit.top, "read-tree", commit.digest, **index)
        _git(commit.top, "checkout-index", "--all", "--quiet", f"--prefix={tree}{os.sep}", **index)
        yield tree


def _find_top(folder: Path) -> Path:
    """Return the top of the repository that a folder is in; the folder itself outside of one."""
    with contextlib.suppress(ModelError, UsageError):
        return Path(_git(folder, "rev-parse", "--show-toplevel"))
    return folder


def _git(folder: Path, *words: str, **variables: str) -> str:
    """Return what git says; ModelError with its first line where it fails, UsageError where it is not installed."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=folder, env=os.environ | variables)
    except FileNotFoundError as error:
        raise UsageError("git is not installed, and a version is named by its commit") from error
    if done.returncode:
        raise ModelError(done.stderr.strip().partition("\n")[0].removeprefix("fatal: ") or f"git {words[0]} failed")
    return done.stdout.strip()
