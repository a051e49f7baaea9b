"""Versions of a model: the code of a file in the working tree, or in a commit of its repository.

    REV:path/to/file.py:NAME     path from the top of the repository, or from this folder with ./, as in git

Files of a commit are written to a temporary folder; the repository is only read. Every version is traced again, because
a file that it imports from elsewhere in the tree may have changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import attrs

from joulemap.plan.model import Model
from joulemap.plan.model_name import is_prefix
from joulemap.plan.workload import find_model, trace
from joulemap.system.cache import cache_folder
from joulemap.system.draft import drafting
from joulemap.system.errors import ModelError, UsageError
from joulemap.system.file import is_there
from joulemap.system.record import frozen
from joulemap.system.resource import need_torch

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Talk

PLAIN: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "protocol.allow=never",
)
"""Git settings that keep a repository from running programs."""

UNSET: Final = frozenset(
    ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR", "GIT_PROXY_COMMAND",
     "GIT_ALLOW_PROTOCOL", "GIT_EXEC_PATH", "GIT_TRACE", "GIT_TRACE2")
)  # fmt: skip
"""Environment variables that name programs or files to git."""

QUIET: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
"""Environment variables that keep git from fetching, prompting and writing."""

MOST_REVISION: Final = 1_000
"""Maximum length of a revision's name in characters."""

_FILE: Final = re.compile(r"(?P<path>.+\.py):\w+")
_REVISION: Final = re.compile(r"(?P<revision>[^:]+):(?P<rest>.+\.(?:py:\w+|pt2))")


@frozen(kw_only=True)
class _Commit:
    """Model file in a commit of the repository that contains this folder."""

    top: Path
    """Top folder of the repository."""
    digest: str
    path: str
    """Path from the top of the repository, with the name in the file."""

    @property
    def label(self) -> str:
        """Name of the version in answers: the commit's digest and the path, however the revision was typed."""
        return f"{self.digest[:12]}:{self.path}"


def find_revision(name: str, settings: Settings, talk: Talk) -> Model:
    """Return a model at the batch size of the settings. Code of a file or a commit is traced.

    Raises like `find_model`, ModelError for a missing commit or file, UsageError without git.
    """
    commit = _find_commit(name)
    here = _FILE.fullmatch(name)
    if commit is not None:
        need_torch(f"tracing {name}")
        with _checked_out(commit) as tree:
            try:
                return _trace(str(tree / commit.path), commit.label, settings, talk, tree)
            except ModelError as error:
                raise type(error)(str(error).replace(f"{tree}{os.sep}", f"{commit.digest[:12]}:")) from error
    if here is not None and Path(here["path"]).is_file():
        return _trace(name, name, settings, talk, _find_top(Path(here["path"]).resolve().parent))
    return find_model(name, settings, next(iter(settings.batch), None))


def _trace(path: str, label: str, settings: Settings, talk: Talk, tree: Path) -> Model:
    """Return the model of a file in a source tree, identified by the digest of its trace."""
    model = find_model(path, settings, next(iter(settings.batch), None))
    need_torch(f"tracing {label}")
    from joulemap.construct.held import digest_workload
    from joulemap.construct.package import importing

    with importing(tree, _find_top(Path.cwd())):
        workload = attrs.evolve(trace(model, talk), model=label)
    request = attrs.evolve(model.request, model=label, content_digest=digest_workload(workload))
    return Model(request=request, retrace=False, traced=attrs.evolve(workload, key=request.key))


def _find_commit(name: str) -> _Commit | None:
    """Return the commit that a name refers to; None for other names and existing files."""
    match = _REVISION.fullmatch(name)
    if match is None or is_there(name.rpartition(":")[0]) or is_prefix(match["revision"]):
        return None
    revision, rest, here = match["revision"], match["rest"], Path.cwd()
    if len(revision) > MOST_REVISION:
        raise ModelError(f"{revision[:20]!r}… is no revision: it has {len(revision):,} characters")
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
def _checked_out(commit: _Commit) -> Iterator[Path]:
    """Yield a temporary folder with all files of a commit."""
    folder = cache_folder().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with drafting(folder) as draft:
        tree = draft / "tree"
        tree.mkdir()
        _write_tree(commit, tree)
        yield tree


def _write_tree(commit: _Commit, tree: Path) -> None:
    """Write the files of a commit byte by byte, without filters, hooks or line-end conversions."""
    entries = []
    for line in _ask_git(commit.top, "ls-tree", "-r", "-z", "--full-tree", commit.digest).split(b"\0"):
        head, _, name = line.partition(b"\t")
        mode, kind, digest = (*head.split(b" "), b"", b"")[:3]
        if kind == b"blob":
            named = os.fsdecode(name)
            if any(part in ("", ".", "..") for part in named.split("/")):
                raise ModelError(f"commit {commit.digest[:12]} has a file {named[:60]!r}, which is outside of its tree")
            entries.append((mode, digest, tree / named))
    links: list[tuple[bytes, Path]] = []
    with tempfile.TemporaryFile(dir=tree.parent) as asked, tempfile.TemporaryFile(dir=tree.parent) as output:
        asked.write(b"".join(digest + b"\n" for _, digest, _ in entries))
        asked.seek(0)
        _ask_git(commit.top, "cat-file", "--batch", given=asked, output=output)
        output.seek(0)
        for mode, _, path in entries:
            answer = output.readline().split()
            if len(answer) != 3:
                raise ModelError(
                    f"this clone lacks {path.relative_to(tree)} of commit {commit.digest[:12]}: `git fetch` brings it"
                )
            content = output.read(int(answer[2]) + 1)[:-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            if mode == b"120000":
                links.append((content, path))
            else:
                path.write_bytes(content)
    for target, link in links:  # last, so that no file is written through a link
        os.symlink(target, os.fsencode(link))


def _find_top(folder: Path) -> Path:
    """Return the top of the repository that contains a folder; the folder itself outside one."""
    with contextlib.suppress(ModelError, UsageError):
        return Path(_git(folder, "rev-parse", "--show-toplevel"))
    return folder


def _git(folder: Path, *words: str) -> str:
    """Return git's output as a line; raises like `_ask_git`."""
    return os.fsdecode(_ask_git(folder, *words)).removesuffix("\n")


def _ask_git(folder: Path, *words: str, given: IO[bytes] | None = None, output: IO[bytes] | None = None) -> bytes:
    """Return git's output, or write it to a file; ModelError with its first error line if it fails.

    A repository's own configuration may name programs. These calls run none: hooks, file monitors and transport helpers
    are turned off, and nothing is fetched. Raises UsageError if git is not installed.
    """
    variables = {name: value for name, value in os.environ.items() if name not in UNSET}
    command = ["git", "--no-pager", *(word for one in PLAIN for word in ("-c", one)), *words]
    try:
        done = subprocess.run(
            command,
            stdin=given or subprocess.DEVNULL,
            stdout=output or subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=variables | QUIET,
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed, but reading a version by its commit needs it") from error
    except ValueError as error:  # a null character in an argument
        raise ModelError(str(error)) from error
    if done.returncode:
        first = os.fsdecode(done.stderr).strip().partition("\n")[0]
        raise ModelError(first.removeprefix("fatal: ") or f"git {words[0]} failed")
    return done.stdout or b""
