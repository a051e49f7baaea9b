"""Commands of common tools that measure the predictions for a machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from joulemap.catalog import LANGUAGE, CheckedRun
from joulemap.catalog.check import Check, list_checks
from joulemap.construct import parse_input
from joulemap.domain import HardwareEntry, HardwareRef, Settings
from joulemap.plan import select_hardware
from joulemap.wing.here.generated.row import RunHere, ServedHere
from joulemap.wing.here.match import Device
from joulemap.wing.here.serve import USUAL_WEIGHTS, Asked
from joulemap.wing.here.show.word import VERIFY, VERIFY_OWN

LAYERS: Final = re.compile(r"(\d+) of \d+ layers")
EXPERTS: Final = re.compile(r"experts of (\d+) of (\d+) layers")

ONNX: Final = ".onnx"
"""Suffix of ONNX files, which the tools read without a conversion."""

WIDE: Final = "fp32"
"""Precision in which most ONNX files store their weights."""

UNREAD: Final = (
    "benchmark_model", "hailortcli benchmark", "migraphx-driver", "onnxruntime_perf_test", "qnn-net-run",
    "rknn_benchmark",
)  # fmt: skip
"""Tools whose output `verify` does not read."""

UNNAMED: Final = ("benchmark_app", "trtexec")
"""Tools whose output states neither the model's joulemap name nor the precision of a quantized or strongly typed model.
"""


def list_served_checks(
    model: str, device: Device, host: Device, asked: Asked, row: ServedHere | None, system: str
) -> Iterator[str]:
    """Yield shell commands that measure a language model on a chip and pass the output to `joulemap verify`.

    `host` is the processor, which may hold a part of the model. Decode, which the answer is about, comes before
    prefill.
    """
    from joulemap.wing.decoder import LOCAL_ENGINE, find_gguf

    divided = LAYERS.match(row.fits) if row is not None else None
    run = CheckedRun(
        model=find_gguf(model),
        kind=LANGUAGE,
        weights=row.weights if row is not None else asked.weights or USUAL_WEIGHTS,
        engine=LOCAL_ENGINE,
        prompt=asked.prompt,
        output=asked.output,
        layers=int(divided[1]) if divided else None,
    )
    routed = EXPERTS.match(row.fits) if row is not None else None
    more = f" --n-cpu-moe {int(routed[2]) - int(routed[1])}" if routed else ""
    more += f" {row.options}" if row is not None and row.options else ""
    for check in reversed([*list_checks(_find_entry(device), run)]):
        if row is None or not row.cards:
            yield from _compare(check.command + more, device, system)
        elif isinstance(host.hardware, str):
            yield from _compare(check.command + more, device, system, f"--host {_name_bare(host.hardware)}")
        else:
            yield check.command + more  # a processor outside the catalogue is described as a chip alone


def list_run_checks(row: RunHere, device: Device, system: str, inputs: Sequence[str] = ()) -> Iterator[str]:
    """Yield commands that measure a model other than a language model on a chip; none if no common tool runs there.

    `verify` takes no `inputs`, so a command with them is not piped into it. The same holds for tools in `UNREAD`.
    """
    sizes = tuple((one.name, one.shape) for one in map(parse_input, inputs))
    run = CheckedRun(model=row.model, precision=row.precision, inputs=sizes)
    for check in list_checks(_find_entry(device), run):
        if check.tool in UNREAD or sizes:
            yield check.command + _add_needs(check, row)
        else:
            facts = f"--model {shlex.quote(row.model)} --precision {row.precision}" if check.tool in UNNAMED else None
            for command in _compare(check.command, device, system, facts):
                yield command + _add_needs(check, row)


def _add_needs(check: Check, row: RunHere) -> str:
    """Return a shell comment that names the model format a command needs; empty if the user's file has this format."""
    return "" if not check.needs or (row.model.endswith(ONNX) and row.precision == WIDE) else f"  # {check.needs}"


def _find_entry(device: Device) -> HardwareEntry:
    if not isinstance(device.hardware, str):
        assert device.hardware is not None
        return HardwareEntry.of(device.hardware)
    return select_hardware(Settings(hardware=(device.hardware,))).pairs[0][0]


def _compare(command: str, device: Device, system: str, facts: str | None = None) -> Iterator[str]:
    """Yield a command piped into `verify`; for a chip missing from the catalogue, it first describes the chip.

    Only Linux can describe such a chip; elsewhere the command is not piped. `facts` holds the `verify` options that
    state what the tool's output omits.
    """
    if isinstance(device.hardware, str):
        yield VERIFY(command=command, hardware=_name_bare(device.hardware), facts=facts)
    elif system != "Linux":
        yield command
    else:
        yield VERIFY_OWN(command=command, hardware=device.label, facts=facts)


def _name_bare(hardware: str) -> str:
    """Return the name of a chip for a shell, without changed constants, which `verify` refuses."""
    ref = HardwareRef.read(hardware)
    return shlex.quote(str(HardwareRef(ref.id, "", ref.mode)))
