"""Models that must be refused in one line: saved programs with code in them, damaged ones, names, inputs and files.

All random choices use the `random.Random` argument, so that a seed reproduces its cases.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import torch

MEMBERS: Final = (
    "data/sample_inputs/model.pt",
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
    "archive_format",
    "archive_version",
    "byteorder",
    ".data/version",
)
"""Paths of members of a saved program, below its folder."""

PROGRAM: Final = "models/model.json"

Members = dict[str, bytes]
Edit = Callable[[Members], None]


class Trap:
    """Object whose pickle creates a file when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (str(self.marker), "w")


@cache
def save_program() -> bytes:
    """Return a program of a few operators with named inputs, a dynamic size, weights and a constant."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 8)
            self.register_buffer("scale", torch.ones(8), persistent=False)
            self.shift = torch.arange(8.0)

        def forward(self, x: torch.Tensor, *, more: list[torch.Tensor]) -> dict[str, torch.Tensor]:
            y = self.linear(x + more[0]) * self.scale + self.shift
            return {"y": torch.relu(y).reshape(x.shape[0] * 2, 4)}

    size = torch.export.Dim("size", min=2, max=64)
    program = torch.export.export(
        Net(),
        (torch.zeros(3, 4),),
        {"more": [torch.zeros(3, 4)]},
        dynamic_shapes={"x": {0: size}, "more": [{0: size}]},
    )
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def read_members(program: bytes) -> Members:
    """Return path below the program's folder -> content, of the members of a saved program."""
    with zipfile.ZipFile(io.BytesIO(program)) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def write_members(members: Mapping[str, bytes]) -> bytes:
    """Return a saved program with these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"model/{name}", content)
    return buffer.getvalue()


def pickle_of(value: object) -> bytes:
    """Return the bytes that `torch.save` writes for a value."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def edit_program(members: Members, edit: Callable[[Any], object]) -> None:
    """Edit the JSON document of the program in place."""
    content = json.loads(members[PROGRAM])
    edit(content)
    members[PROGRAM] = json.dumps(content).encode()


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with every text changed, including keys."""
    if isinstance(value, dict):
        return {change(name): change_texts(child, change) for name, child in value.items()}
    if isinstance(value, list):
        return [change_texts(child, change) for child in value]
    return change(value) if isinstance(value, str) else value


def poison_program(marker: Path) -> dict[str, Callable[[], bytes]]:
    """Return place of the hidden code -> function that makes the saved program; the code creates the file `marker`."""
    call = f"open({str(marker)!r}, 'w')"
    trap = pickle_of(Trap(marker))
    cases: dict[str, Edit] = {
        "sample inputs": _put("data/sample_inputs/model.pt", trap),
        "weights of old": _put("data/weights/model.pt", trap),
        "constants of old": _put("data/constants/model.pt", trap),
        "a pickled weight": _payload("weights", "weight_0", trap),
        "a pickled constant": _payload("constants", "tensor_0", trap),
        "an opaque constant": _payload("constants", "opaque_obj_0", pickle.dumps(Trap(marker))),
        "a custom object": _payload("constants", "custom_obj_0", trap),
        "a library": _put("data/aotinductor/model/model.so", b"\x7fELF"),
        "a second program": _put("models/other.json", _rename("x", f"x: {call}")),
        "a function of torch": _operate("torch.os.system", f"touch {marker}"),
        "a function of a function": _operate("torch.ops.aten.__class__.__init__", "x"),
        "an operator that saves": _operate("torch.ops.aten.save.default", str(marker)),
        "an operator that maps a file": _operate("torch.ops.aten.from_file.default", str(marker)),
        "a size": _edit_texts(lambda text: f"Max({text}, {call})" if text.startswith("Symbol(") else text),
        "a size of a tensor that is called as a remark": _hide_size(call),
        "the name of an input": _rename("x", f"x: {call}"),
        "the name of an argument": _edit_arguments([f"x: {call}", "more"]),
        "a keyword": _edit_texts(
            lambda text: text.replace("more", f"more': {call}, 'z") if "children" in text else text
        ),
        "a parameter": _edit_texts(lambda text: text.replace("linear.w", f'linear"), {call}, getattr(self, "w')),
        "a container": _edit_texts(lambda text: text.replace("builtins.list", "collections.defaultdict")),
        "a guard": _edit_program(lambda program: program.update(guards_code=[call])),
    }
    programs: dict[str, Callable[[], bytes]] = {name: partial(_edited, edit) for name, edit in cases.items()}
    return programs | {"a program of old": partial(_save_as_of_old, trap), "a name twice": partial(_twice, trap)}


def _edited(edit: Edit) -> bytes:
    members = read_members(save_program())
    edit(members)
    return write_members(members)


def _put(name: str, content: bytes | Edit) -> Edit:
    def edit(members: Members) -> None:
        if callable(content):
            changed = dict(members)
            content(changed)
            members[name] = changed[PROGRAM]
        else:
            members[name] = content

    return edit


def _edit_program(edit: Callable[[Any], object]) -> Edit:
    return lambda members: edit_program(members, edit)


def _edit_texts(change: Callable[[str], str]) -> Edit:
    def edit(members: Members) -> None:
        members[PROGRAM] = json.dumps(change_texts(json.loads(members[PROGRAM]), change)).encode()

    return edit


def _rename(old: str, new: str) -> Edit:
    return _edit_texts(lambda text: new if text == old else text)


def _hide_size(call: str) -> Edit:
    """Return an edit that gives a tensor the name of metadata, and evaluates `call` for its size."""

    def edit(members: Members) -> None:
        _rename("linear", "metadata")(members)
        edit_program(members, poison)

    def poison(program: Any) -> None:
        size = program["graph_module"]["graph"]["tensor_values"]["metadata"]["sizes"][0]["as_expr"]
        size["expr_str"] = f"Max({size['expr_str']}, {call})"

    return edit


def _edit_arguments(names: list[str]) -> Edit:
    def edit(program: Any) -> None:
        program["graph_module"]["module_call_graph"][0]["signature"]["forward_arg_names"] = names

    return _edit_program(edit)


def _operate(target: str, *arguments: str) -> Edit:
    """Return an edit that inserts a call of an operator without outputs before all others."""

    def edit(program: Any) -> None:
        inputs = [{"name": "", "arg": {"as_string": argument}, "kind": 1} for argument in arguments]
        node = {"target": target, "inputs": inputs, "outputs": [{"as_none": True}], "metadata": {}, "name": "added"}
        program["graph_module"]["graph"]["nodes"].insert(0, node)

    return _edit_program(edit)


def _payload(kind: str, member: str, content: bytes) -> Edit:
    """Return an edit that replaces the first weight or constant by a pickled object."""

    def edit(members: Members) -> None:
        name = f"data/{kind}/model_{kind}_config.json"
        configuration = json.loads(members[name])
        first = next(iter(configuration["config"].values()))
        first.update(path_name=member, use_pickle=True)
        members[name] = json.dumps(configuration).encode()
        members[f"data/{kind}/{member}"] = content

    return edit


def _save_as_of_old(trap: bytes) -> bytes:
    """Return a program in the format of torch 2.7, whose sample inputs are a trap."""
    members = read_members(save_program())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("version", "8.20")
        archive.writestr("serialized_exported_program.json", members[PROGRAM])
        archive.writestr("serialized_state_dict.pt", pickle_of({}))
        archive.writestr("serialized_constants.pt", pickle_of({}))
        archive.writestr("serialized_example_inputs.pt", trap)
    return buffer.getvalue()


def _twice(trap: bytes) -> bytes:
    """Return a program with two members whose names differ only in case, which its reader treats as the same."""
    members = read_members(save_program())
    inputs = members.pop("data/sample_inputs/model.pt")
    return write_members({"data/sample_inputs/MODEL.pt": trap, **members, "data/sample_inputs/model.pt": inputs})


def damage_program(draw: random.Random, program: bytes) -> bytes:
    """Return a saved program that is cut, has flipped bits, or has swapped, empty, missing or changed members."""
    return draw.choice((_cut, _flip, _flip_inside, _swap, _drop, _empty, _mistype, _retext))(draw, program)


def _cut(draw: random.Random, program: bytes) -> bytes:
    start, end = sorted(draw.sample(range(len(program)), 2))
    return draw.choice((program[:start], program[start:end], program[:start] + program[end:]))


def _flip(draw: random.Random, program: bytes) -> bytes:
    changed = bytearray(program)
    for _ in range(draw.choice((1, 1, 4, 64))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _change_members(program: bytes, edit: Edit) -> bytes:
    members = read_members(program)
    edit(members)
    return write_members(members)


def _flip_inside(draw: random.Random, program: bytes) -> bytes:
    """Return the program with flipped bits in one member, and a correct checksum."""

    def edit(members: Members) -> None:
        name = draw.choice([name for name, content in members.items() if content])
        members[name] = _flip(draw, members[name])

    return _change_members(program, edit)


def _swap(draw: random.Random, program: bytes) -> bytes:
    def edit(members: Members) -> None:
        one, other = draw.sample(list(members), 2)
        members[one], members[other] = members[other], members[one]

    return _change_members(program, edit)


def _drop(draw: random.Random, program: bytes) -> bytes:
    def edit(members: Members) -> None:
        del members[draw.choice(list(members))]

    return _change_members(program, edit)


def _empty(draw: random.Random, program: bytes) -> bytes:
    filling = draw.choice((b"", b"{}", b"[]", b"null", b"\0" * 64, b"[" * 20_000, draw.randbytes(100)))
    return _change_members(program, lambda members: members.update({draw.choice(list(members)): filling}))


def _mistype(draw: random.Random, program: bytes) -> bytes:
    """Return the program with a value of another type or size in the JSON of one member."""

    def edit(members: Members) -> None:
        name = draw.choice([name for name in members if name.endswith(".json")])
        content = json.loads(members[name])
        holder, key = draw.choice(_places(content))
        holder[key] = draw.choice(
            (None, True, -1, 10**30, 1.5, "", "x", "\ud800", "(" * 300, [], {}, [[]], {"as_int": 2**62})
        )
        members[name] = json.dumps(content).encode()

    return _change_members(program, edit)


def _retext(draw: random.Random, program: bytes) -> bytes:
    """Return the program with one text of its JSON replaced by another one of its texts."""

    def edit(members: Members) -> None:
        content = json.loads(members[PROGRAM])
        texts = [(holder, key) for holder, key in _places(content) if isinstance(holder[key], str)]
        (holder, key), (source, other) = draw.sample(texts, 2)
        holder[key] = source[other]
        members[PROGRAM] = json.dumps(content).encode()

    return _change_members(program, edit)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value in a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, child in pairs for place in ((value, key), *_places(child))]


SIZES: Final = (
    *(
        "0",
        "1",
        "2",
        "3",
        "16",
        "-1",
        "+1",
        "",
        " ",
        "1.5",
        "1e3",
        "nan",
        "inf",
        "x",
        "0x10",
        "\u0663",
        "\u00b2",
        "1_000",
    ),
    *("9" * 19, "9" * 20, "9" * 5_000, str(2**31), str(2**63), str(10**30)),
)
"""Texts for a size of an input."""


def bad_input(draw: random.Random) -> str:
    """Return a text for `--input` that mostly cannot be parsed, and seldom fits a model."""
    sizes = draw.choices(SIZES, k=draw.choice((0, 1, 2, 2, 3, 4, 70, 2_000)))
    name = draw.choice(("", "", "", "x=", "=", "1=", "x y=", "x=x=", "\ud800=", f"{'n' * 300}=", "größe="))
    dtype = draw.choice(("", "", "", ":fp32", ":int64", ":", ":fp33", ":fp32:fp32", ":\ud800", ":" + "d" * 300))
    return name + draw.choice((",", "x", ",", ",,", " , ")).join(sizes) + dtype


PIECES: Final = (
    *("resnet18", "mlp", "resnet", "nothing", "timm:", "hf:", "timm:x", "hf:Bert", ":", "::", "md:", "s3://"),
    *(
        ".py",
        ".py:",
        ".py:net",
        ".pt2",
        ".pt2:",
        "/",
        "//",
        "..",
        "~",
        "*",
        "-",
        "--",
        "%s",
        "{}",
        "'",
        '"',
        ";",
        "$(id)",
    ),
    *(" ", "\t", "\n", "\0", "\ud800", "\x1b[31m", "\u00e9", "\U0001d4c3", "a" * 300, "/dev/null", "/dev/zero"),
)
"""Parts of a model's name."""


def bad_name(draw: random.Random) -> str:
    """Return a model name that mostly does not exist."""
    return "".join(draw.choices(PIECES, k=draw.choice((1, 1, 2, 3, 6))))


TROUBLE: Final = (
    "raise GeneratorExit",
    "raise SystemExit(0)",
    "raise SystemExit",
    "import sys; sys.exit('text')",
    "raise KeyboardInterrupt",
    "raise StopIteration",
    "raise MemoryError",
    "raise BaseException('own')",
    "raise Strange",
    "raise Exception('\\ud800\\0')",
    "raise ValueError(chr(10))",
    "def again(): again()\nagain()",
    "1 / 0",
    "import nothing_of_this_name",
    "import sys; sys.stdout.close()",
    "import sys; sys.stdout.detach()",
    "import sys; sys.stdout = sys.stderr = None",
    "import os; os.close(1)",
    "import os; os.close(2)",
    "import os; os.write(1, b'written')",
    "import os; os.chdir('/')",
    "import os; os.environ.clear()",
    "import builtins; builtins.print = None",
    "import sys; sys.path.clear()",
    "import sys; sys.argv.clear()",
    "import sys; sys.setrecursionlimit(9_000)",
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
    "import signal; signal.alarm(1)",
    "import random; random.seed(0)",
    "import warnings; warnings.warn('told')",
    "import logging; logging.getLogger('torch').error('told')",
    "import torch; torch.set_default_dtype(torch.float64)",
    "import torch; torch.set_default_device('meta')",
    "import torch; torch.set_grad_enabled(False)",
    "import torch; torch.use_deterministic_algorithms(True)",
)
"""Statements for a model file."""


def bad_file(draw: random.Random) -> bytes:
    """Return a model file with a factory `net` and an unusual statement at import, build or run time."""
    statements = ["pass", "pass", "pass"]
    statements[draw.randrange(3)] = draw.choice(TROUBLE)
    content = write_file(*statements)
    return _flip(draw, content) if draw.random() < 0.2 else content


def write_file(top: str = "pass", build: str = "pass", forward: str = "pass") -> bytes:
    """Return a model file whose statements run when it is imported, when `net` is built, and when the model runs."""
    top, build, forward = (line.replace("\n", "\n{}") for line in (top, build, forward))
    text = f"""
import torch


class Strange(BaseException):
    def __str__(self):
        raise ValueError("no text")


{top.format("")}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        {forward.format("        ")}
        return self.linear(x)


def net():
    {build.format("    ")}
    return Net(), torch.zeros(1, 4)
"""
    return text.encode()
