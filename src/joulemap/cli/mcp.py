"""`joulemap mcp`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.cli.command import command, option
from joulemap.cli.output import DatabaseOptions
from joulemap.cli.value import read_quantity
from joulemap.system.config import name_variable
from joulemap.system.errors import ExitCode, JoulemapError, MissingPackageError, UnknownNameError, UsageError
from joulemap.system.handle import IS_POSIX
from joulemap.system.record import frozen
from joulemap.system.resource import package_version

if TYPE_CHECKING:
    import asyncio
    from asyncio.subprocess import Process

    from mcp.server.lowlevel import Server

    from joulemap.cli.tool import Tool

INSTRUCTIONS: Final = (
    "Predictions of latency, energy, memory and cost of neural networks on hardware. A number has an 80 % interval "
    "(low and high, or a half-width h of its logarithm: v exp(-h) to v exp(h)) and a basis: measured, published, "
    "derived, scaled, recalled or assumed. Report both. `command` repeats an answer in a shell. `left_out` names "
    "rows that did not fit: ask for less, or query stored results of compare, explain and recommend with sql. Names of "
    "hardware: hardware_list. Tables: `SHOW TABLES` and `DESCRIBE runs` in sql."
)


OPTIONS_HELP: Final = (
    "Describe every argument of a tool in full. Arguments missing in the schema go into its argument `more`, e.g. "
    '{"weight_precision": "int4"}.'
)
"""Description of the tool `options`."""

MOST_READ: Final = 10_000
"""Maximum rows that a statement's answer may have."""

NO_JSON: Final = "the line is not JSON: expected one JSON-RPC message a line"
NO_ID: Final = "the request has no usable id: expected a string or an integer"
NO_REQUEST: Final = "the message is no JSON-RPC 2.0 request: expected jsonrpc, id, method and params"

MOST_BYTES: Final = 16_000_000
"""Maximum bytes of an answer that are read from a call's process."""

MOST_ERROR_BYTES: Final = 100_000
"""Maximum bytes that are read from the standard error of a call's process."""

MOST_LINE: Final = 2_000
"""Maximum characters of an error message."""

GRACE_S: Final = 2.0
"""Seconds that a call may overrun its limit before it is killed."""

MEMORY_PER_CORE_BYTES: Final = 64e6
"""Memory that numeric libraries of a call reserve per core. Source: assumed; OpenBLAS reserves 32 MB."""

HALF: Final = re.compile(
    r"(?P<before>(?<!\\)(?:\\\\)*)(?:(?P<whole>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""JSON escape of a UTF-16 surrogate pair, or of half a pair."""


@frozen(kw_only=True)
class Host:
    """Executor of tool calls, each in its own process, which ends with the call."""

    db: Path
    folders: tuple[Path, ...]
    runs_code: bool
    timeout_s: float
    most_rows: int
    most_characters: int
    most_calls: int = 4
    most_memory_bytes: float = 4e9

    @property
    def here(self) -> Path:
        """Folder from which relative paths start: the first folder that tools may read, else the root."""
        return self.folders[0] if self.folders else Path(os.sep)

    @cached_property
    def _slots(self) -> asyncio.Semaphore:
        import asyncio

        return asyncio.Semaphore(self.most_calls)

    def spell(self, tool: Tool, given: dict[str, Any], more: Sequence[str] = ()) -> list[str]:
        """Return the command line of a call with `more` options; UsageError for a forbidden request."""
        from joulemap.cli.tool import check_files

        if not tool.bounds:  # the guard of the engine checks what a statement may read
            words = tool.spell(given)
            check_files(words[len(tool.command) :], self.folders, self.here, runs_code=self.runs_code)
        return tool.spell(given, ["--db", str(self.db.absolute()), *more])

    async def answer(self, tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a call with the command that repeats it; JoulemapError with its one-line error.

        A call is refused if it waits for others longer than its own time limit.
        """
        import asyncio

        words = self.spell(tool, given)
        bounds = ["--timeout", str(self.timeout_s), "--max-rows", str(MOST_READ)] if tool.bounds else []
        line = self.spell(tool, given, [*bounds, "--format", "json", "--quiet"])
        try:
            if self._slots.locked():
                await asyncio.wait_for(self._slots.acquire(), self.timeout_s)
            else:
                await self._slots.acquire()
        except TimeoutError as error:
            raise UsageError(f"{self.most_calls} calls are running, the maximum of --max-calls") from error
        try:
            output = await self._run(line)
            answer, left = await asyncio.to_thread(_read_answer, output, self.most_rows, self.most_characters)
        finally:
            self._slots.release()
        command = shlex.join(["joulemap", *words])
        answer.pop("command", None)  # replaced by the whole command line
        made = {"source": f"joulemap {package_version('joulemap')}, {self.db.absolute()}"}
        return {"command": command, **made, **({"left_out": left} if left else {}), **answer}

    async def _run(self, words: list[str]) -> bytes:
        """Return the output of a command; JoulemapError with its message if it fails or exceeds a limit.

        The operating system limits its memory; `MOST_BYTES` limits its output.
        """
        import asyncio
        from asyncio.subprocess import DEVNULL, PIPE

        # git must not find a repository above the folder, whose commits would give access to other files
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.here.parent)}
        for name in ("COLUMNS", name_variable("trust")):  # a message that does not wrap is one line
            environment.pop(name, None)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "joulemap", *words,
                stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=self.here, env=environment, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"cannot start the call: {reason}") from error
        try:
            _bound_memory(process.pid, self.most_memory_bytes)
            output, errors = await asyncio.wait_for(_read_both(process), self.timeout_s + GRACE_S)
        except TimeoutError as error:
            raise UsageError(
                f"no answer within {self.timeout_s:g} s: ask for less, or start the server with a longer --timeout"
            ) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                if IS_POSIX:
                    os.killpg(process.pid, 9)
                else:
                    process.kill()
            with contextlib.suppress(TimeoutError):  # unread output in the pipes delays the end
                await asyncio.wait_for(process.communicate(), GRACE_S)
        if process.returncode not in (ExitCode.OK, ExitCode.OUTSIDE, ExitCode.UNSCORED):  # all have an answer
            lines = errors.decode(errors="replace").strip().splitlines()
            line = (lines or ["internal error: the process ended without a message"])[-1].removeprefix("joulemap: ")
            if "MemoryError" in line:
                line = f"the call needs more than {self.most_memory_bytes / 1e9:g} GB of memory: ask for less"
            raise UsageError(line[:MOST_LINE])
        return output


def _bound_memory(process: int, most_bytes: float) -> None:
    """Limit the memory of a process, if the operating system supports it."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        most = int(most_bytes + MEMORY_PER_CORE_BYTES * (os.cpu_count() or 1))
        resource.prlimit(process, resource.RLIMIT_DATA, (most, most))


async def _read_both(process: Process) -> tuple[bytes, bytes]:
    """Return stdout and stderr of a process after its end; UsageError for too much output."""
    import asyncio

    async def read(stream: asyncio.StreamReader | None, most: int, *, is_cut: bool) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while stream is not None and (piece := await stream.read(65_536)):
            size += len(piece)
            if size <= most:
                pieces.append(piece)
            elif not is_cut:
                raise UsageError(f"the answer is longer than {most / 1e6:g} MB: ask for fewer rows or columns")
        return b"".join(pieces)

    reads = [
        asyncio.create_task(read(process.stdout, MOST_BYTES, is_cut=False)),
        asyncio.create_task(read(process.stderr, MOST_ERROR_BYTES, is_cut=True)),
    ]
    try:
        output, errors = await asyncio.gather(*reads)
        await process.wait()
    finally:
        for one in reads:
            one.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
    return output, errors


def _read_answer(output: bytes, most_rows: int, most_characters: int) -> tuple[dict[str, Any], str]:
    """Return the JSON of a command cut to size, and a text on the omitted rows; NaN and infinities are null."""
    from joulemap.cli.tool import cut

    answer, left = cut(json.loads(output, parse_constant=lambda _: None), most_rows, most_characters)
    whole = json.loads(make_plain(json.dumps(answer, ensure_ascii=False)))
    return (whole if isinstance(whole, dict) else {"rows": whole}), left


def make_plain(text: str) -> str:
    """Return a text with a question mark for each lone surrogate, which streams refuse."""
    return text.encode("utf-8", errors="replace").decode()


def mend_line(line: str) -> str:
    r"""Return a line of JSON with U+FFFD for each escaped lone surrogate, which the reader refuses."""
    return HALF.sub(lambda match: match[0] if match["whole"] else f"{match['before']}\\ufffd", line)


def make_server(host: Host) -> Server[Any]:
    """Return an MCP server of the tools; MissingPackageError if the SDK is not installed."""
    if package_version("mcp") == "absent":
        raise MissingPackageError("mcp", "mcp")

    import mcp_types as types
    from mcp.server.lowlevel import Server

    from joulemap.cli.tool import OPTIONS, OPTIONS_SCHEMA, describe_options, list_tools

    tools = list_tools()

    def hint(tool: Tool) -> types.ToolAnnotations:
        only_reads = tool.bounds or tool.command[0] == "hardware"  # other tools store their results
        return types.ToolAnnotations(
            read_only_hint=only_reads, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )

    async def list_them(_context: Any, _asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=one.description, input_schema=one.schema, annotations=hint(one))
                for name, one in tools.items()
            ]
            + [types.Tool(name=OPTIONS, description=OPTIONS_HELP, input_schema=dict(OPTIONS_SCHEMA))]
        )

    async def call(_context: Any, request: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            given = dict(request.arguments or {})
            if request.name not in (*tools, OPTIONS):
                raise UnknownNameError("tool", request.name, [*tools, OPTIONS])
            wants_options = request.name == OPTIONS
            content = describe_options(given) if wants_options else await host.answer(tools[request.name], given)
        except JoulemapError as error:
            line = make_plain(" ".join(str(error).splitlines()))
            return types.CallToolResult(content=[types.TextContent(type="text", text=line)], is_error=True)
        text = json.dumps(content, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=content)

    return Server(
        "joulemap",
        version=package_version("joulemap"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_them,
        on_call_tool=call,
    )


@command
def mcp(
    *,
    allow: list[Path] | None = option(None, "Folder whose files tools may read; repeatable.", metavar="FOLDER"),
    run_code: bool = option(False, "Allow tools to run model code in the folders of --allow: FILE.py:NAME, FILE.pt2."),
    timeout: float = option(60.0, "Maximum seconds per call.", metavar="SECONDS", min=0.1),
    max_rows: int = option(200, "Maximum rows per table of an answer.", min=1),
    max_characters: int = option(20_000, "Maximum characters of an answer; rows are dropped until it fits.", min=1000),
    max_calls: int = option(4, "Maximum concurrent calls; others wait.", min=1),
    max_memory: str = option("4GB", "Maximum memory per call.", metavar="SIZE"),
    database: DatabaseOptions,
) -> None:
    """Serve commands as tools to an MCP client.

    MCP is the Model Context Protocol. The tools are compare, explain, diff, verify, sql and others. A client starts the
    server and talks to it over stdin and stdout. A failed call returns the error line of its command.

    \b
    joulemap mcp
    joulemap mcp --db results.duckdb --allow ./models --timeout 120
    """
    for folder in allow or ():
        if not folder.is_dir():
            raise UsageError(f"--allow {folder}: no such folder")
    host = Host(
        db=database.db,
        folders=tuple(folder.resolve() for folder in allow or ()),
        runs_code=run_code,
        timeout_s=timeout,
        most_rows=max_rows,
        most_characters=max_characters,
        most_calls=max_calls,
        most_memory_bytes=read_quantity("--max-memory", max_memory, "B") or 4e9,
    )
    server = make_server(host)
    import asyncio

    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write), mending(read, write) as mended:
            await server.run(mended, write, server.create_initialization_options())

    asyncio.run(serve())


@contextlib.asynccontextmanager
async def mending(read: Any, write: Any) -> AsyncIterator[Any]:
    """Yield a stream of messages in which messages with a lone surrogate are repaired; answer unreadable messages.

    The SDK delivers an unreadable message as an error, which no other code would answer.
    """
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import INVALID_REQUEST, jsonrpc_message_adapter

    sent, mended = anyio.create_memory_object_stream[Any](0)

    async def pass_on() -> None:
        async with sent:
            async for one in read:
                message = one
                if isinstance(one, Exception):
                    try:
                        text = mend_line(_find_line(one))
                        message = SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
                    except (ValueError, RecursionError):
                        await write.send(SessionMessage(make_refusal(one)))
                        continue
                if _lacks_id(message.message):
                    await write.send(SessionMessage(_refuse(INVALID_REQUEST, NO_ID)))
                    continue
                await sent.send(message)

    async with anyio.create_task_group() as group:
        group.start_soon(pass_on)
        yield mended
        group.cancel_scope.cancel()


def _lacks_id(message: Any) -> bool:
    """Return whether a message is a request whose id is neither a string nor an integer.

    The SDK takes it for a notification, which nothing answers; the protocol's notifications begin with a word of their
    own.
    """
    from mcp_types import JSONRPCNotification

    return isinstance(message, JSONRPCNotification) and not message.method.startswith("notifications/")


def _refuse(code: int, text: str, identity: int | str | None = None) -> Any:
    from mcp_types import ErrorData, JSONRPCError

    return JSONRPCError(jsonrpc="2.0", id=identity, error=ErrorData(code=code, message=text))


def _list_inputs(error: Exception) -> list[tuple[str, Any]]:
    """Return (kind, value) of each fault that pydantic found in a message."""
    from pydantic import ValidationError

    return [(one["type"], one["input"]) for one in error.errors()] if isinstance(error, ValidationError) else []


def _find_line(error: Exception) -> str:
    """Return the line that is no JSON; ValueError for a line that is JSON, whose repair would change nothing."""
    for kind, value in _list_inputs(error):
        if kind == "json_invalid":
            return value if isinstance(value, str) else bytes(value).decode(errors="replace")
    raise ValueError("the line is JSON")


def make_refusal(error: Exception) -> Any:
    """Return the JSON-RPC error that answers an unreadable message, with its id if it states one."""
    from mcp_types import INVALID_REQUEST, PARSE_ERROR

    inputs = _list_inputs(error)
    is_json = bool(inputs) and all(kind != "json_invalid" for kind, _ in inputs)
    identifier = next((value["id"] for _, value in inputs if isinstance(value, dict) and "id" in value), None)
    identity = identifier if isinstance(identifier, int | str) and not isinstance(identifier, bool) else None
    return _refuse(*((INVALID_REQUEST, NO_REQUEST) if is_json else (PARSE_ERROR, NO_JSON)), identity)
