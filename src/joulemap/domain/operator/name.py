"""Names of single operators: a kind, and its sizes in brackets.

    gemm(m=128,n=4096,k=4096)        x[m,k] times the transpose of W[n,k], where W is a weight
    bmm(b=16,m=128,n=128,k=64)       b GEMMs of two activations, x[m,k] y[k,n]
    conv2d(channels_in=64,channels_out=64,size=56,kernel=3,padding=1)
    attention(queries=1,cached=1023,heads=32,kv_heads=8,head_dim=128)
    attention(queries=1,cached=1023,heads=16,kv_heads=1,head_dim=576,value_dim=512,latent=true)   values within keys
    experts(rows=128,hidden=2048,inner=768,taken=8,experts=128)   mixture of experts: both GEMMs and the activation
    scan(kind=mamba2,heads=128,head_dim=64,state=128,groups=8)    update of one state per sequence
    softmax(rows=4096,columns=4096)
    layer_norm(rows=4096,columns=4096), and rms_norm
    embedding(rows=128,columns=4096,table=32000)
    rotary(rows=128,heads=32,kv_heads=8,head_dim=128)   position embedding of queries and keys, in one kernel
    gated(kind=silu,rows=128,columns=14336)             silu(x) y, with x and y next to one another, in one kernel
    elementwise(kind=add,elements=1048576)
    batch_norm(channels=64,size=56)
    max_pool2d(channels=64,size=112,kernel=3,stride=2,padding=1)
    global_avg_pool(channels=2048,size=7)
    all_reduce(elements=65536,devices=8)                one device's part in a sum over all devices
    all_gather, reduce_scatter, all_to_all              `elements` counts the whole buffer, gathered or to scatter
    send(elements=65536,devices=8)                      to one other device of the group

A name has one canonical spelling: arguments in a fixed order, without those at their default. Every other spelling is
read as the canonical one, so that two spellings give one workload.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from joulemap.physics.record.weight import STORED
from joulemap.physics.record.workload import NARROW_CACHES
from joulemap.system.errors import UsageError
from joulemap.system.name import fold_into

MOST: Final = 2**48
"""Maximum size; no practical tensor has more elements."""

Value = int | bool | str


@attrs.frozen
class Argument:
    """Argument in the name of a single operator."""

    name: str
    default: Value | None = None
    """Default value; None if the argument is required."""
    least: int = 1
    choices: tuple[str, ...] = ()
    """Valid texts; empty if any word is valid."""

    def read(self, kind: str, text: str) -> Value:
        """Parse a value of the argument; UsageError if it is invalid."""
        if isinstance(self.default, bool):
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise UsageError(f"{kind}: {self.name} is {_short(text)}, expected true or false")
        if self.choices:
            if (found := fold_into(text, self.choices)) in self.choices:
                return found
            raise UsageError(f"{kind}: {self.name} is {_short(text)}, expected one of {', '.join(self.choices)}")
        if isinstance(self.default, str):
            if _WORD.fullmatch(text):
                return text.lower()
            raise UsageError(f"{kind}: {self.name} is {_short(text)}, expected a word like flash_attention")
        if text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) and self.least <= int(text) <= MOST:
            return int(text)
        raise UsageError(f"{kind}: {self.name} is {_short(text)}, expected a whole number from {self.least} to {MOST}")


@attrs.frozen
class Elementwise:
    """Function that the operator `elementwise` computes, such as `relu` or `add`."""

    aten: str
    """ATen operator of the function. Its formula gives the operation count."""
    is_binary: bool = False
    """True if the function takes a second operand."""


ELEMENTWISE: Final[Mapping[str, Elementwise]] = {
    **{name: Elementwise(f"{name}.default") for name in ("relu", "gelu", "silu", "sigmoid")},
    **{name: Elementwise(f"{name}.default") for name in ("tanh", "exp", "sqrt", "neg")},
    "copy": Elementwise("clone.default"),
    **{name: Elementwise(f"{name}.Tensor", is_binary=True) for name in ("add", "sub", "mul", "div")},
    "pow": Elementwise("pow.Tensor_Tensor", is_binary=True),
}
"""Value of the argument `kind` of `elementwise` -> function."""

MIXING: Final = ("cutlass", "fused_moe", "marlin", "torch_flow", "triton", "trtllm")
"""Kernel designs for `experts`. The name of a kernel contains one of these words; without a name, it is Triton's."""

POWER_LAW: Final = "power_law_"
"""Prefix of a routing of `experts`; an exponent follows. The i-th expert gets a share of the tokens that falls with i
to this power.
"""

READ_ALL: Final = "all"
"""Routing of `experts` whose kernel multiplies full blocks of rows for every expert of a device, chosen or not."""

COLLECTIVES: Final = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send")
"""Collective operations of several devices; `send` involves two of them."""

LIBRARIES: Final = ("nccl", "direct", "trtllm", "deepep", "deepep_ll")
"""Implementations of a collective: a library of rings (`nccl`), kernels of an inference engine that read peers' memory,
or kernels that send tokens to experts and back, each once per host (`deepep`) or to each expert (`deepep_ll`). Empty
selects `nccl` or `direct`, whichever an engine would use.
"""

GATES: Final = ("silu", "gelu")
"""Activation functions that `gated` can apply to the first half of its input."""

SCANS: Final = ("mamba", "mamba2", "delta")
"""State updates of `scan`: with a decay per element, with a decay per head, or by the delta rule. The delta rule also
corrects the state by its prediction error.
"""

ARGUMENTS: Final[Mapping[str, tuple[Argument, ...]]] = {
    "gemm": (Argument("m"), Argument("n"), Argument("k"), Argument("bias", default=False)),
    "bmm": (Argument("b"), Argument("m"), Argument("n"), Argument("k")),
    "conv2d": (
        Argument("batch", default=1),
        Argument("channels_in"),
        Argument("channels_out"),
        Argument("size"),
        Argument("kernel"),
        Argument("stride", default=1),
        Argument("padding", default=0, least=0),
        Argument("groups", default=1),
        Argument("bias", default=False),
    ),
    "attention": (
        Argument("batch", default=1),
        Argument("queries"),
        Argument("cached", default=0, least=0),
        Argument("heads"),
        Argument("kv_heads", default=0),
        Argument("head_dim"),
        Argument("value_dim", default=0),
        Argument("latent", default=False),
        Argument("causal", default=False),
        Argument("window", default=0, least=0),
        Argument("cache", default="", choices=(*NARROW_CACHES, "bf16")),
        Argument("kernel", default=""),
    ),
    "experts": (
        Argument("rows"),
        Argument("hidden"),
        Argument("inner"),
        Argument("taken"),
        Argument("experts"),
        Argument("held", default=0),
        Argument("gated", default=True),
        Argument("function", default="", choices=("silu", "gelu", "relu")),
        Argument("bias", default=False),
        Argument("stored", default="", choices=STORED),
        Argument("routing", default=""),
        Argument("kernel", default=""),
    ),
    "scan": (
        Argument("kind", choices=SCANS),
        Argument("batch", default=1),
        Argument("tokens", default=1),
        Argument("heads"),
        Argument("head_dim"),
        Argument("state"),
        Argument("groups", default=1),
    ),
    "softmax": (Argument("rows"), Argument("columns")),
    "layer_norm": (Argument("rows"), Argument("columns"), Argument("bias", default=True)),
    "rms_norm": (Argument("rows"), Argument("columns"), Argument("weight", default=True)),
    "embedding": (Argument("rows"), Argument("columns"), Argument("table")),
    "rotary": (Argument("rows"), Argument("heads"), Argument("kv_heads", default=0), Argument("head_dim")),
    "gated": (Argument("kind", choices=GATES), Argument("rows"), Argument("columns")),
    "elementwise": (Argument("kind", choices=tuple(ELEMENTWISE)), Argument("elements"), Argument("operand", default=0)),
    "batch_norm": (Argument("batch", default=1), Argument("channels"), Argument("size")),
    "max_pool2d": (
        Argument("batch", default=1),
        Argument("channels"),
        Argument("size"),
        Argument("kernel"),
        Argument("stride", default=0),
        Argument("padding", default=0, least=0),
    ),
    "global_avg_pool": (Argument("batch", default=1), Argument("channels"), Argument("size")),
    **dict.fromkeys(
        COLLECTIVES,
        (Argument("elements"), Argument("devices", least=2), Argument("kernel", default="", choices=LIBRARIES)),
    ),
}
"""Kind of operator -> arguments, in the order in which a name lists them. A default of 0 means that the value follows
from other arguments.
"""

EXAMPLES: Final[Mapping[str, str]] = {
    "gemm": "gemm(m=128,n=4096,k=4096)",
    "bmm": "bmm(b=16,m=128,n=128,k=64)",
    "conv2d": "conv2d(channels_in=64,channels_out=64,size=56,kernel=3,padding=1)",
    "attention": "attention(queries=1,cached=1023,heads=32,kv_heads=8,head_dim=128)",
    "experts": "experts(rows=128,hidden=2048,inner=768,taken=8,experts=128)",
    "scan": "scan(kind=mamba2,heads=128,head_dim=64,state=128,groups=8)",
    "softmax": "softmax(rows=4096,columns=4096)",
    "layer_norm": "layer_norm(rows=4096,columns=4096)",
    "rms_norm": "rms_norm(rows=4096,columns=4096)",
    "embedding": "embedding(rows=128,columns=4096,table=32000)",
    "rotary": "rotary(rows=128,heads=32,kv_heads=8,head_dim=128)",
    "gated": "gated(kind=silu,rows=128,columns=14336)",
    "elementwise": "elementwise(kind=add,elements=1048576)",
    "batch_norm": "batch_norm(channels=64,size=56)",
    "max_pool2d": "max_pool2d(channels=64,size=112,kernel=3,stride=2,padding=1)",
    "global_avg_pool": "global_avg_pool(channels=2048,size=7)",
    **{name: f"{name}(elements=65536,devices=8)" for name in COLLECTIVES},
}
"""Kind of operator -> example name."""

_NAME: Final = re.compile(r"\s*(?P<kind>[A-Za-z][A-Za-z0-9_-]*)\s*(?P<rest>\(.*)?", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,99}")
_LONGEST: Final = 60


def has_exchange(pattern: str) -> bool:
    """Return whether a fusion pattern such as `linear+all_reduce` contains an exchange between devices."""
    return not {*COLLECTIVES}.isdisjoint(pattern.split("+"))


@attrs.frozen
class SingleOperator:
    """Operator that forms a whole workload."""

    kind: str
    arguments: Mapping[str, Value] = attrs.field(hash=False)
    """Argument -> value, for all arguments, in the order in which a name lists them."""

    def size(self, name: str) -> int:
        """Return the value of a numeric argument."""
        return int(self.arguments[name])

    def __str__(self) -> str:
        """Return the canonical spelling of the name."""
        arguments = [
            f"{name}={str(value).lower()}"
            for name, value in self.arguments.items()
            if value != _implied(self.kind, name, self.arguments)
        ]
        return f"{self.kind}({','.join(arguments)})"


def find_kind(name: str) -> str:
    """Return the operator kind that a name begins with, with or without brackets; empty for any other name."""
    found = _NAME.fullmatch(name)
    kind = fold_into(found["kind"], ARGUMENTS) if found else ""
    return kind if kind in ARGUMENTS else ""


def is_operator(name: str) -> bool:
    """Return True if a name is a single operator with its sizes."""
    return "(" in name and bool(find_kind(name))


def find_operator(name: str, given: Iterable[tuple[str, str]] = ()) -> SingleOperator | None:
    """Parse a name, with further arguments in `given`, into an operator; None if it does not name an operator.

    Raises UsageError, with the correct form, for wrong brackets, arguments or values.
    """
    found = _NAME.fullmatch(name)
    kind = find_kind(name)
    if found is None or not kind:
        return None
    known = {argument.name: argument for argument in ARGUMENTS[kind]}
    values = read_arguments(kind, name, (found["rest"] or "()").strip(), ARGUMENTS[kind], EXAMPLES[kind], given)
    missing = [one.name for one in known.values() if one.default is None and one.name not in values]
    if missing:
        raise UsageError(f"{kind} needs {', '.join(missing)}: write {EXAMPLES[kind]}")
    return make_operator(kind, values)


def read_arguments(
    kind: str,
    name: str,
    rest: str,
    arguments: Iterable[Argument],
    example: str,
    given: Iterable[tuple[str, str]] = (),
) -> dict[str, Value]:
    """Parse the arguments in the brackets of a name and those in `given`; UsageError for invalid ones."""
    known = {argument.name: argument for argument in arguments}
    values: dict[str, Value] = {}
    for argument, text in [*_split(name, rest, example), *given]:
        if argument not in known:
            raise UsageError(f"{kind} takes no argument {_short(argument)}; it takes: {', '.join(known)}")
        value = known[argument].read(kind, text)
        if values.setdefault(argument, value) != value:
            raise UsageError(f"{kind}: {argument} is {values[argument]} and {value}, expected one value")
    return values


def make_operator(kind: str, values: Mapping[str, Value]) -> SingleOperator:
    """Build an operator from a kind and arguments, filling in implied ones; UsageError as in `find_operator`."""
    whole: dict[str, Value] = {}
    for one in ARGUMENTS[kind]:
        value = values[one.name] if one.name in values else _implied(kind, one.name, {**values, **whole})
        whole[one.name] = value
    if kind == "attention" and whole["queries"] == 1:
        whole["causal"] = False  # the last token attends to all others anyway
    _check(kind, whole)
    return SingleOperator(kind, whole)


def spell(name: str) -> str:
    """Return the canonical spelling of an operator's name, any other name unchanged; raises like `find_operator`."""
    operator = find_operator(name) if "(" in name else None
    return str(operator) if operator is not None else name


def complete(text: str) -> list[str]:
    """Return completions of a partly typed operator name: its kind or its next argument."""
    before, bracket, inside = text.partition("(")
    if not bracket:
        return [f"{kind}(" for kind in ARGUMENTS if kind.startswith(text.lower())]
    kind = find_kind(before)
    if not kind or inside.endswith(")"):
        return []
    return complete_argument(text, inside, ARGUMENTS[kind])


def complete_argument(text: str, inside: str, arguments: Iterable[Argument]) -> list[str]:
    """Return completions of the next argument for a partly typed name with an open bracket."""
    done, _, last = inside.rpartition(",")
    given = {one.partition("=")[0].strip() for one in done.split(",")}
    start = text[: len(text) - len(last)]
    name, equals, begun = last.partition("=")
    if equals:
        choices = (choice for one in arguments if one.name == name.strip() for choice in one.choices)
        return [f"{start}{name}={choice}" for choice in choices if choice.startswith(begun)]
    return [f"{start}{one.name}=" for one in arguments if one.name.startswith(last.strip()) and one.name not in given]


def _split(name: str, rest: str, example: str) -> list[tuple[str, str]]:
    """Split the text in brackets into (argument, text) pairs."""
    if not rest.endswith(")") or "(" in rest[1:]:
        raise UsageError(f"cannot read {_short(name)}: write {example}")
    inside = rest[1:-1].strip()
    found = []
    for part in inside.split(",") if inside else []:
        argument, equals, text = part.partition("=")
        if not equals:
            raise UsageError(f"cannot read {_short(part.strip())} in {_short(name)}: write {example}")
        found.append((argument.strip(), text.strip()))
    return found


def _implied(kind: str, name: str, values: Mapping[str, Value]) -> Value:
    """Return the value of an argument that a name omits: its default, or a value that follows from other arguments."""
    if name == "kv_heads":
        return values["heads"]
    if name == "function":
        return "silu" if values["gated"] else "relu"
    if name == "held":
        return values["experts"]
    if name == "value_dim":
        return values["head_dim"]
    if kind == "max_pool2d" and name == "stride":
        return values["kernel"]
    if name == "operand":
        if values["kind"] == "pow":
            return 1
        return values["elements"] if ELEMENTWISE[str(values["kind"])].is_binary else 0
    found = next(one.default for one in ARGUMENTS[kind] if one.name == name)
    return "" if found is None else found


def _check(kind: str, values: Mapping[str, Value]) -> None:
    """Raise UsageError for values that contradict each other."""
    number = {name: int(value) for name, value in values.items() if not isinstance(value, str)}
    if kind in ("conv2d", "max_pool2d"):
        _check_most(kind, number, "kernel", number["size"] + 2 * number["padding"], "size + 2 padding")
    if kind == "max_pool2d":
        _check_most(kind, number, "padding", number["kernel"] // 2, "half the kernel")
    if kind == "conv2d":
        _check_divisor(kind, number, "groups", "channels_in")
        _check_divisor(kind, number, "groups", "channels_out")
    if kind == "scan":
        _check_divisor(kind, number, "groups", "heads")
    if kind in ("attention", "rotary"):
        _check_divisor(kind, number, "kv_heads", "heads")
    if kind == "attention" and number["latent"]:
        _check_most(kind, number, "value_dim", number["head_dim"], "head_dim")
    if kind == "rotary" and number["head_dim"] % 2:
        raise UsageError(f"rotary: head_dim is {number['head_dim']}, expected an even number: pairs are rotated")
    if kind == "experts":
        _check_most(kind, number, "taken", number["experts"], "experts")
        _check_divisor(kind, number, "held", "experts")
        _check_routing(str(values["routing"]))
        _check_mixing(str(values["kernel"]))
    if kind == "elementwise":
        if ELEMENTWISE[str(values["kind"])].is_binary:
            _check_divisor(kind, number, "operand", "elements")
        elif number["operand"]:
            raise UsageError(f"elementwise: {values['kind']} takes one operand; leave out operand")


def _check_routing(routing: str) -> None:
    exponent = routing.removeprefix(POWER_LAW)
    is_skewed = exponent != routing and re.fullmatch(r"[0-2]\.\d{1,6}", exponent)
    if routing not in ("", "balanced", READ_ALL) and not is_skewed:
        raise UsageError(
            f"experts: routing is {_short(routing)}, expected none, balanced, {READ_ALL}, or an exponent such as "
            f"{POWER_LAW}1.2"
        )


def _check_mixing(kernel: str) -> None:
    if kernel and not any(word in kernel for word in MIXING):
        raise UsageError(f"experts: kernel is {_short(kernel)}, expected a name with one of {', '.join(MIXING)}")


def _check_most(kind: str, number: Mapping[str, int], name: str, most: int, what: str) -> None:
    if number[name] > most:
        raise UsageError(f"{kind}: {name} is {number[name]}, expected at most {what}, {most}")


def _check_divisor(kind: str, number: Mapping[str, int], name: str, of: str) -> None:
    if number[of] % number[name]:
        raise UsageError(f"{kind}: {name} is {number[name]}, expected a divisor of {of}, {number[of]}")


def _short(text: str) -> str:
    """Quote a text for an error message, shortened if it is long."""
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
