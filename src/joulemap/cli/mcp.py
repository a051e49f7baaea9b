"""`joulemap mcp`."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.cli.command import command, option
from joulemap.cli.output import DatabaseOptions
from joulemap.system.errors import JoulemapError, MissingPackageError, UsageError
from joulemap.system.record import frozen
from joulemap.system.resource import package_version

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from joulemap.cli.tool import Tool

INSTRUCTIONS: Final = (
    "Predictions of latency, energy, memory and cost of neural networks on hardware. A figure has an 80 % interval "
    "(low and high, or a half-width h of its logarithm: v exp(-h) to v exp(h)) and a basis: measured, published, "
    "derived, scaled, recalled or assumed. Tell both with it. `command` repeats an answer in a shell; `left_out` says "
    "which rows did not fit: ask for less, or use sql on what compare, explain and recommend have stored. Names of "
    "hardware: hardware_list; tables: `SHOW TABLES` and `DESCRIBE runs` of sql."
)


MOST_READ: Final = 10_000
"""Rows of a statement from which on it is refused; of fewer the first are shown."""


@frozen(kw_only=True)
class Host:
    """What answers calls of tools: each in a process of its own, which ends with the call."""

    db: Path
    wait: float
    folders: tuple[Path, ...]
    runs_code: bool
    timeout_s: float
    most_rows: int
    most_characters: int

    @property
    def here(self) -> Path:
        """The folder that relative paths are from: the first that is allowed, else one that holds nothing of use."""
        return self.folders[0] if self.folders else Path(os.sep)

    def spell(self, tool: Tool, given: dict[str, Any]) -> list[str]:
        """Return the command that answers a call; UsageError for what may not be asked."""
        from joulemap.cli.tool import check_files

        words = tool.spell(given)
        if not tool.bounds:  # what a statement may read is checked by the engine's guard
            check_files(words[len(tool.command) :], self.folders, self.here, runs_code=self.runs_code)
        return [*words, "--db", str(self.db.absolute())]

    async def answer(self, tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
        """Return what a call answers, with the command that repeats it; JoulemapError with its one line."""
        from joulemap.cli.tool import cut

        words = self.spell(tool, given)
        bounds = ["--timeout", str(self.timeout_s), "--max-rows", str(MOST_READ)] if tool.bounds else []
        output = await self._run([*words, *bounds, "--wait", str(self.wait), "--format", "json", "--quiet"])
        command = shlex.join(["joulemap", *words])
        found, left = cut(json.loads(output), self.most_rows, self.most_characters)
        told = found if isinstance(found, dict) else {"rows": found}
        made = {"source": f"joulemap {package_version('joulemap')}, {self.db.absolute()}"}
        return {"command": command, **made, **({"left_out": left} if left else {}), **told}

    async def _run(self, words: list[str]) -> bytes:
        """Return what a command writes; JoulemapError with what it says where it fails or takes too long."""
        import asyncio
        from asyncio.subprocess import DEVNULL, PIPE

        # a commit's files are below the folder as others are: no repository above it is one
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.here.parent)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "joulemap", *words,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=self.here, env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            output, told = await asyncio.wait_for(process.communicate(), self.timeout_s + 1.0)
        except TimeoutError as error:
            raise UsageError(
                f"no answer within {self.timeout_s:g} s: ask for less, or start the server with a longer --timeout"
            ) from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)
                await process.wait()
        if process.returncode:
            lines = told.decode(errors="replace").strip().splitlines()
            raise UsageError((lines or ["internal error: it ended without a word"])[-1].removeprefix("joulemap: "))
        return output


def make_server(host: Host) -> Server[Any]:
    """Return a server of the tools; MissingPackageError where the SDK is not installed."""
    if package_version("mcp") == "absent":
        raise MissingPackageError("mcp", "mcp")
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from joulemap.cli.tool import list_tools

    tools = list_tools()

    def hint(tool: Tool) -> types.ToolAnnotations:
        only_reads = tool.bounds or tool.command[0] == "hardware"  # the others store what they evaluate
        return types.ToolAnnotations(
            read_only_hint=only_reads, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )

    async def list_them(_context: Any, _asked: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=one.description, input_schema=one.schema, annotations=hint(one))
                for name, one in tools.items()
            ]
        )

    async def call(_context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if asked.name not in tools:
                from joulemap.system.errors import UnknownNameError

                raise UnknownNameError("tool", asked.name, tools)
            found = await host.answer(tools[asked.name], dict(asked.arguments or {}))
        except JoulemapError as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        text = json.dumps(found, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=found)

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
    allow: list[Path] | None = option(
        None, "Tools may read files below this folder; repeat for several.", shown="none"
    ),
    run_code: bool = option(False, "Tools may run the code of models below it: FILE.py:NAME, FILE.pt2."),
    timeout: float = option(60.0, "End a call after so many seconds.", min=0.1),
    max_rows: int = option(200, "Rows of each table in an answer.", min=1),
    max_characters: int = option(20_000, "Of an answer; rows are left out until it fits.", min=1000),
    database: DatabaseOptions,
) -> None:
    """Serve compare, explain, diff, verify, sql and more as tools of the Model Context Protocol.

    A client starts it and speaks to it over stdin and stdout. An error of a tool is the line that its command says.

    \b
    joulemap mcp
    joulemap mcp --db results.duckdb --allow ./models --timeout 120
    """
    for folder in allow or ():
        if not folder.is_dir():
            raise UsageError(f"--allow {folder}: there is no such folder")
    host = Host(
        db=database.db,
        wait=database.wait,
        folders=tuple(folder.resolve() for folder in allow or ()),
        runs_code=run_code,
        timeout_s=timeout,
        most_rows=max_rows,
        most_characters=max_characters,
    )
    server = make_server(host)
    import asyncio

    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())
