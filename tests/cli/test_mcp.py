"""Tools of a program: a real session with the SDK's own client, what may be asked, and answers cut to size."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from conftest import Run
from joulemap.cli.mcp import OPTIONS_HELP, Host, make_server
from joulemap.cli.tool import ALL, OPTIONS, OPTIONS_SCHEMA, check_files, cut, list_tools
from joulemap.system.errors import JoulemapError, MissingPackageError, UsageError

if TYPE_CHECKING:
    from mcp import Client

ROOT = Path(__file__).parents[2]

Call = Callable[..., Awaitable[tuple[bool, Any]]]


def host(db: Path, **changed: Any) -> Host:
    usual: dict[str, Any] = {"db": db, "folders": (), "runs_code": False, "timeout_s": 60.0}
    return Host(**{**usual, "most_rows": 200, "most_characters": 20_000, **changed})


def session(server: Any, work: Callable[[Client, Call], Awaitable[None]]) -> None:
    """Work with a client; a call gives whether it failed, and the answer or the line."""
    from mcp import Client  # a second for each worker
    from mcp_types import TextContent

    async def run() -> None:
        async with Client(server) as client:

            async def call(name: str, **given: Any) -> tuple[bool, Any]:
                result = await client.call_tool(name, given)
                (content,) = result.content
                assert isinstance(content, TextContent)
                if result.is_error:
                    assert "\n" not in content.text
                    return True, content.text
                assert json.loads(content.text) == result.structured_content
                return False, result.structured_content

            await work(client, call)

    asyncio.run(run())


def test_tools_are_listed_and_a_statement_is_answered_within_bounds(database: Path) -> None:
    async def work(client: Client, call: Call) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {*ALL, "options"}
        failed, content = await call("sql", statement="SELECT run_id, energy_low_j, energy_basis FROM runs ORDER BY 1")
        assert not failed and len(content["rows"]) == 2 and "2 of" in content["left_out"], content["left_out"]
        failed, told = await call("sql", statement="SELECT * FROM read_text('/etc/passwd')")
        assert failed and told.startswith("Permission Error")
        failed, told = await call("compute")
        assert (failed, told.partition(";")[0]) == (True, "unknown tool 'compute'")

    session(make_server(host(database, most_rows=2)), work)


ASKED: dict[str, dict[str, Any]] = {
    "compare": {"model": ["resnet18", "tpu_v4"], "hardware": "l4", "precision": ["bf16"]},
    "explain": {"model": "resnet18", "hardware": ["tpu_v4", "h100_sxm5"]},
    "llm": {"model": "llama-3.1-8b", "hardware": "l4", "batch": 1},
    "fleet": {"model": "resnet18", "hardware": "l4,t4", "rate": "200/s", "p99": "50ms", "precision": "int8"},
    "recommend": {"model": "resnet18", "hardware": "l4", "max_latency": "50ms"},
    "hardware": {"hardware": "l4"},
    "hardware_list": {"deployment": "edge"},
    "verify": {"files": [str(ROOT / "tests/data/verify/trtexec.log")], "hardware": "rtx_3090"},
    "diff": {"before": "resnet18", "after": "resnet34", "hardware": "l4", "precision": "bf16"},
    "sql": {
        "statement": "SELECT hardware, energy_low_j, energy_basis FROM runs WHERE batch = $b",
        "parameter": ["b=1"],
    },
}


@pytest.mark.slow
def test_every_tool_answers_with_interval_basis_source_and_a_command_that_repeats_it(
    own_database: Path, joulemap: Run
) -> None:
    async def work(_client: Client, call: Call) -> None:
        for name, given in ASKED.items():
            failed, content = await call(name, **given)
            assert not failed, content
            text = json.dumps(content)
            assert content["source"].startswith("joulemap ") and len(text) <= 21_000
            assert name in ("hardware_list", "verify") or "basis" in text or "doubt" in text, name
            assert name.startswith("hardware") or any(one in text for one in ("half_width", "_low", '"low"')), name
            again = joulemap(*shlex.split(content["command"])[1:])
            assert again.returncode == 0, again.stderr
        for name, given, told in (
            ("compare", {"model": ["resnet81"]}, "unknown model"),
            ("compare", {"model": ["resnet18"], "precision": "fp17"}, "fp17"),
            ("explain", {"model": "resnet18", "hardware": ["l4"]}, "found 1"),
            ("sql", {"statement": "DROP VIEW runs"}, "expected a SELECT"),
            ("llm", {"model": "./net.py:net"}, "--run-code"),
        ):
            failed, line = await call(name, **given)
            assert failed and told in line

    from mcp.client.stdio import StdioServerParameters

    words = ["-m", "joulemap", "mcp", "--db", str(own_database), "--allow", str(ROOT / "tests/data/verify")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    session(StdioServerParameters(command=sys.executable, args=words, env=environment), work)


def test_a_call_that_takes_too_long_is_ended(database: Path) -> None:
    async def work(_client: Client, call: Call) -> None:
        failed, told = await call("hardware_list")
        assert failed and told.startswith("no answer within -2 s")

    server = make_server(host(database, timeout_s=-2.0))
    session(server, work)


@pytest.mark.wings
def test_the_schema_of_a_tool_is_that_of_its_command() -> None:
    tools = list_tools()
    explain, fleet = tools["explain"].schema, tools["fleet"].schema["properties"]
    assert explain["required"] == ["model"]
    assert explain["properties"]["metric"]["enum"] == ["energy", "latency", "edp", "memory"]
    assert explain["properties"]["hardware"]["type"] == "array"
    kinds = (fleet["output"]["type"], fleet["release"]["type"], fleet["node"]["type"])
    assert kinds == (["integer", "string"], "boolean", "integer")
    for tool in tools.values():
        assert not {"db", "format", "force", "trust", "timeout", "report", "file"} & tool.schema["properties"].keys()
        assert all(one["description"].strip(".") for one in tool.schema["properties"].values())
        assert tool.description
        assert tool.schema["properties"].keys() - {"more"} == tool.listed
        assert tool.listed <= tool.whole.keys() and ("more" in tool.schema["properties"]) == (
            tool.listed < set(tool.whole)
        )


def test_schemas_are_short_and_name_the_same_things_alike() -> None:
    tools = list_tools()
    listed = [{"name": name, "description": one.description, "inputSchema": one.schema} for name, one in tools.items()]
    listed.append({"name": OPTIONS, "description": OPTIONS_HELP, "inputSchema": dict(OPTIONS_SCHEMA)})
    assert len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False)) < 15_000
    kinds: dict[str, set[str]] = {}
    for tool in tools.values():
        for name, one in tool.whole.items():
            kinds.setdefault(name, set()).add(str(one["type"]))
    assert {name: several for name, several in kinds.items() if len(several) > 1} == {"model": {"array", "string"}}
    assert {"model", "hardware"} <= tools["compare"].listed and not {"models", "words"} & kinds.keys()


def test_arguments_that_a_schema_does_not_list_go_into_more(database: Path) -> None:
    spelled = list_tools()["compare"].spell({"model": ["resnet18"], "more": {"weight_precision": "int4"}})
    assert shlex.join(spelled) == "compare resnet18 --weight-precision int4"
    with pytest.raises(UsageError, match="more is 'int4'"):
        list_tools()["compare"].spell({"model": ["resnet18"], "more": "int4"})

    async def work(_client: Client, call: Call) -> None:
        failed, content = await call("options", tool="compare")
        assert not failed and "int4:64" in content["arguments"]["weight_precision"]["description"]
        failed, told = await call("options", tool="compute")
        assert failed and told.startswith("unknown tool 'compute'")

    session(make_server(host(database)), work)


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("compare", {"precision": "bf16", "model": ["resnet18", "l4"]}, "compare resnet18 l4 --precision bf16"),
        (
            "compare",
            {"model": ["resnet18"], "batch": [1, 8], "where": ["all"]},
            "compare resnet18 --where all --batch 1,8",
        ),
        ("explain", {"model": "resnet18", "set": ["a=1W", "-b=2"]}, "explain resnet18 --set a=1W --set=-b=2"),
        ("hardware", {"hardware": "l4", "energy": False}, "hardware show l4"),
        ("recommend", {"model": "mlp", "more": {"site": ["pue=1"]}}, "recommend mlp --site pue=1"),
        ("llm", {"model": "phi-4", "prompt": 0}, "llm phi-4 --prompt 0"),
    ],
)
def test_arguments_are_the_words_of_a_command(tool: str, given: dict[str, Any], words: str) -> None:
    assert shlex.join(list_tools()[tool].spell(given)) == words


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "compare needs model:"),
        ({"model": ["resnet18"], "db": "x"}, "unknown argument of compare 'db'"),
        ({"model": ["resnet18", "--db=x"]}, "model begins with -"),
        ({"model": ["resnet18"], "batch": {"a": 1}}, "batch is {'a': 1}, expected a string"),
    ],
)
def test_arguments_that_a_command_lacks_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(JoulemapError) as caught:
        list_tools()["compare"].spell(given)
    assert str(caught.value).startswith(told)


def test_only_files_below_a_folder_that_is_allowed_are_read_and_no_code(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "chip.toml").write_text("id = 'chip'")
    (inside / "models.toml").write_text('[models]\n"../out/net.py:net" = 1.0\n')
    (inside / "link").symlink_to(outside)

    def check(value: str, *, runs_code: bool = False) -> None:
        check_files([value], [inside], inside, runs_code=runs_code)

    for fine in (
        "resnet18",
        "l4@72W,h100_sxm5",
        "chip.toml",
        "./chip.toml@5W",
        f"{inside}/chip.toml",
        "hf:Llama",
        "1/s",
    ):
        check(fine)
    for wrong in (f"{outside}/chip.toml", "../out/chip.toml", "link/chip.toml", "l4,link", "~/x", "/etc/passwd", ".."):
        with pytest.raises(UsageError, match="outside"):
            check(wrong)
        with pytest.raises(UsageError, match="outside"):
            check(f"name={wrong}", runs_code=True)
    for code in ("net.py:net", "train(net.PY:net,devices=2)", "HEAD:net.py:net", "net.pt2", "models.toml"):
        with pytest.raises(UsageError, match="code"):
            check(code)
        check(code, runs_code=True)


def test_links_beside_a_named_file_are_followed_only_into_allowed_folders(tmp_path: Path) -> None:
    """A snapshot of a hub's cache consists of links to the blobs beside it."""
    blobs, snapshot = tmp_path / "models--a" / "blobs", tmp_path / "models--a" / "snapshots" / "1"
    for folder in (blobs, snapshot):
        folder.mkdir(parents=True)
    (blobs / "digest").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/digest")
    (snapshot / "model.safetensors").write_bytes(b"")
    (snapshot / "notes.txt").symlink_to("/etc/hostname")
    for named in (snapshot, snapshot / "model.safetensors"):
        check_files([str(named)], [tmp_path / "models--a"], tmp_path, runs_code=False)
        with pytest.raises(UsageError, match=r"config\.json"):
            check_files([str(named)], [snapshot], snapshot, runs_code=False)


def test_an_answer_is_cut_to_size_and_says_so() -> None:
    rows = [{"name": f"row {place}", "value": 1.0 / 3.0, "none": None} for place in range(200)]
    kept, left = cut({"answer": "yes", "rows": rows, "ids": list(range(50))}, 200, 1000)
    assert left == "rows: 10 of 200; ids: 12 of 50"
    assert kept["rows"][0] == {"name": "row 0", "value": 0.333333, "none": None} and len(json.dumps(kept)) <= 1000
    assert cut({"rows": rows[:2]}, 200, 1000)[1] == ""
    assert cut({"text": "x" * 2000}, 200, 1000) == ({}, "the whole answer, which is longer than the limit")


def test_without_the_sdk_a_line_says_what_to_install(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("joulemap.cli.mcp.package_version", lambda _name: "absent")
    with pytest.raises(MissingPackageError, match=r"mcp is not installed: pip install mcp, or 'joulemap\[mcp\]'"):
        make_server(host(database))


def test_the_whole_of_an_argument_is_resolved_as_the_command_opens_it(tmp_path: Path) -> None:
    """Names of files have spaces, commas and signs at which others are cut."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.json").write_text("{}")
    for name in ("my link", "a,b", "a=b", "a@b", "a (b)", " a", "a b c"):
        (inside / name).symlink_to(outside)
        for value in (f"{name}/secret.json", name, f"x={name}/secret.json", f"l4,{name}", f"train({name}/secret.json)"):
            with pytest.raises(UsageError, match="outside"):
                check_files([value], [inside], inside, runs_code=False)
    (inside / "fine name.json").write_text("{}")
    check_files(["fine name.json", "a sentence, of words (and signs): one"], [inside], inside, runs_code=False)
    with pytest.raises(UsageError, match="names"):
        check_files([",".join("abc" for _ in range(300))], [inside], inside, runs_code=False)


def test_a_file_that_names_others_names_none_outside(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "secret.json").write_text("{}")
    mix = inside / "mix.toml"
    for text in ('[models]\n"../secret.json" = 1.0\n', f'model = "{tmp_path}/secret.json(tokens=1)"\n'):
        mix.write_text(text)
        with pytest.raises(UsageError, match="names"):
            check_files(["mix.toml"], [inside], inside, runs_code=False)
    mix.write_text('source = "https://example.org/a.json"\nnote = "J / op, ~kpu_t256"\n[models]\n"fine.json" = 1.0\n')
    check_files(["mix.toml"], [inside], inside, runs_code=False)
    os.mkfifo(inside / "pipe.toml")  # opened by nobody
    check_files(["pipe.toml"], [inside], inside, runs_code=False)


async def _many(call: Call, count: int, **given: Any) -> list[tuple[bool, Any]]:
    return await asyncio.gather(*(call("sql", **given) for _ in range(count)))


@pytest.mark.slow
def test_an_answer_that_is_too_long_is_ended_and_rows_are_whole(database: Path) -> None:
    async def work(_client: Client, call: Call) -> None:
        failed, told = await call("sql", statement="SELECT repeat('x', 1000000) AS x FROM range(20)")
        assert failed and told.startswith("the answer is longer than 16 MB")
        failed, told = await call("sql", statement="SELECT NULL AS a, '' AS b, [] AS c, 1 AS d")
        assert not failed and told["rows"] == [{"a": None, "b": "", "c": [], "d": 1}]
        for statement in ("-- a comment\nSELECT 1 AS a", "/* one */ SELECT 1 AS a", "--x\n--y\nSELECT 1 AS a"):
            failed, told = await call("sql", statement=statement)
            assert not failed and told["rows"] == [{"a": 1}], told
        failed, told = await call("sql", statement="SELECT 'nan'::DOUBLE AS a")
        assert not failed and told["rows"] == [{"a": None}]
        for statement in ("SELECT '\0'", "x" * 200_000):
            failed, _ = await call("sql", statement=statement)
            assert failed
        assert [line for failed, line in await _many(call, 6, statement="SELECT 1 AS a") if failed] == []

    session(make_server(host(database, most_calls=2)), work)


@pytest.mark.slow
def test_calls_that_are_too_many_are_refused(database: Path) -> None:
    async def work(_client: Client, call: Call) -> None:
        slow = "SELECT sum(a.range * b.range) FROM range(100000000) AS a, range(100000000) AS b"
        told = await _many(call, 4, statement=slow)
        assert all(failed for failed, _ in told)
        assert any("--max-calls" in line for _, line in told)

    session(make_server(host(database, most_calls=1, timeout_s=1.5)), work)


def test_lines_that_are_no_requests_are_answered_and_the_server_goes_on(database: Path) -> None:
    words = [sys.executable, "-m", "joulemap", "mcp", "--db", str(database)]
    odd = {
        -32600: [b"null", b"1.5", b"60000000000", b"true", b'"text"', b"[]", b"[1, null]", b"{}", b"-1", b"1e400",
                 b'{"jsonrpc":"2.0","id":5}', b'{"jsonrpc":"2.0","id":5,"method":7}',
                 b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":[1],"method":"tools/list"}',
                 b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]'],
        -32700: [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000, b"x" * 5_000_000, b"\0", b"nul"],
    }  # fmt: skip
    begin = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"x","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    last = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    lines = b"".join(line + b"\n" for some in odd.values() for line in some)
    answers: list[dict[str, Any]] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None and server.stdout is not None
        writing = Thread(target=server.stdin.write, args=(begin + lines + last,))  # whoever leaves at once gets no more
        writing.start()
        while not answers or answers[-1].get("id") != 2:
            answers.append(json.loads(server.stdout.readline()))
            if writing.is_alive():
                continue
            server.stdin.flush()
        writing.join()
        server.stdin.close()
    codes = [one["error"]["code"] for one in answers if "error" in one]
    assert {code: codes.count(code) for code in odd} == {code: len(some) for code, some in odd.items()}
    assert [one["id"] for one in answers if "error" in one].count(5) == 2
    assert any(one["id"] == 2 and one["result"]["tools"] for one in answers)
