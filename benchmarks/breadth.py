"""Count third-party models that can be traced, and compare their counts with torch's (`make test-models`).

python benchmarks/breadth.py [--only timm|hf|others] [--limit N] [--names NAME,NAME]

Covers every model of timm, every configuration of transformers' AutoModel, and the factories of `others.py`, by name:
`timm:resnet18`, `hf:BertConfig`, `benchmarks/others.py:unet`. Ends with the failures by cause.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs
import torch
from tabulate import tabulate
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from joulemap.construct.builder import surrounding
from joulemap.construct.model import build_request, trace_request
from joulemap.domain.settings import Settings
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.workload import Workload
from joulemap.plan.workload import find_model
from joulemap.system.errors import JoulemapError
from joulemap.system.resource import package_version
from joulemap.trace.guest import hosting
from joulemap.wing.hub.name import HUBS

OTHERS: Final = Path(__file__).with_name("others.py")
TOLERANCE: Final = 1e-3
"""Maximum relative difference of a MAC count from torch's."""


@attrs.frozen(kw_only=True)
class Result:
    """Outcome of one model."""

    name: str
    error: str = ""
    """Error of the trace; empty if the model was traced."""
    mac_count: int = 0
    torch_mac_count: int | None = None
    """MACs by torch's counter; None if the counter cannot run the model."""
    uncounted: tuple[str, ...] = ()
    is_built_with_weights: bool = False

    @property
    def is_exact(self) -> bool | None:
        """True if the counts agree; None without a count of torch."""
        if self.error or not self.torch_mac_count:
            return None
        return abs(self.mac_count - self.torch_mac_count) <= TOLERANCE * self.torch_mac_count


def list_timm() -> list[str]:
    """Return all models of timm."""
    import timm

    return [f"timm:{name}" for name in timm.list_models()]


def list_transformers() -> list[str]:
    """Return all configurations that AutoModel knows."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING

    return sorted({f"hf:{configuration.__name__}" for configuration in MODEL_MAPPING})


def list_others() -> list[str]:
    """Return all factories of `others.py`."""
    tree = ast.parse(OTHERS.read_text())
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    return [f"{OTHERS}:{name}" for name in names]


SOURCES: Final[Mapping[str, Callable[[], list[str]]]] = {
    "timm": list_timm,
    "hf": list_transformers,
    "others": list_others,
}


def count_with_torch(name: str) -> int | None:
    """Return the MACs by torch's own counter; None if it cannot run the model on the meta device."""
    try:
        request = find_model(name, Settings(), None).request
        with hosting(name), surrounding(request):
            built = build_request(request)
            module = built.module.to("meta").eval()
            inputs = tree_map(_to_meta, (tuple(built.positional), dict(built.named)))
            with FlopCounterMode(display=False) as counter, torch.no_grad(), torch.device("meta"):
                module(*inputs[0], **inputs[1])
    except JoulemapError:
        return None
    return int(counter.get_total_flops()) // FLOPS_PER_MAC


def _to_meta(value: object) -> object:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def trace(name: str) -> Workload:
    """Return the workload of a model by name."""
    return trace_request(find_model(name, Settings(), None).request)


def check(name: str) -> Result:
    """Trace a model and return its outcome."""
    short = name.removeprefix(f"{OTHERS}:")
    try:
        workload = trace(name)
    except JoulemapError as error:
        return Result(name=short, error=str(error))
    except Exception as error:  # an error of joulemap
        return Result(name=short, error=f"internal error: {type(error).__name__}: {error}")
    return Result(
        name=short,
        mac_count=workload.mac_count,
        torch_mac_count=None if routes(workload) else count_with_torch(name),
        uncounted=tuple(sorted({one.aten for one in workload.operators if one.kind == "uncounted"})),
        is_built_with_weights=any(note.startswith("built with its weights") for note in workload.notes),
    )


def routes(workload: Workload) -> bool:
    """Return whether a workload has grouped GEMMs, which torch's counter ignores."""
    return any("grouped_mm" in operator.aten for operator in workload.operators)


def find_cause(result: Result) -> str:
    """Return an error without the parts that differ between models."""
    text = result.error.splitlines()[0].partition(f"{result.name}: ")[2] or result.error
    text = re.sub(r"\(after [^)]*\)|; [\w.]+\.py, line \d+", "", text.replace(result.name, "MODEL"))
    return re.sub(r"\d+", "N", text)[:110].strip()


def write_summary(source: str, results: list[Result]) -> str:
    """Return the outcomes of the models of one source, and their failures by cause."""
    failed = [result for result in results if result.error]
    compared = [result for result in results if result.is_exact is not None]
    lines = [
        f"{source}: {len(results) - len(failed)} of {len(results)} traced, "
        f"{sum(bool(result.is_exact) for result in compared)} of {len(compared)} counts agree with torch's, "
        f"{sum(result.is_built_with_weights for result in results)} built with weights, "
        f"{sum(bool(result.uncounted) for result in results)} with an uncounted operator"
    ]
    causes = defaultdict(list)
    for result in failed:
        causes[find_cause(result)].append(result.name)
    for result in compared:
        if not result.is_exact:
            causes["count differs from torch's"].append(
                f"{result.name} ({result.mac_count:,} against {result.torch_mac_count:,})"
            )
    for result in results:
        for aten in result.uncounted:
            causes[f"uncounted: {aten}"].append(result.name)
    rows = [
        (len(names), cause, ", ".join(names[:3]) + (" …" if len(names) > 3 else "")) for cause, names in causes.items()
    ]
    if rows:
        lines.append(tabulate(sorted(rows, reverse=True), headers=("models", "cause", "for example")))
    return "\n".join(lines)


def main() -> None:
    """Trace the requested models and print a table of failures by cause for each source."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=tuple(SOURCES))
    parser.add_argument("--limit", type=int, help="so many of each source, evenly spread")
    parser.add_argument("--names", default="", help="comma-separated, as timm:resnet18 or unet")
    arguments = parser.parse_args()
    wanted = {name for name in arguments.names.split(",") if name}
    for source, list_models in SOURCES.items():
        if arguments.only not in (None, source):
            continue
        if source in HUBS and package_version(HUBS[source]) == "absent":
            print(f"{source}: {HUBS[source]} is not installed: pip install 'joulemap[models]'")
            continue
        names = [name for name in list_models() if not wanted or name in wanted or name.rpartition(":")[2] in wanted]
        if arguments.limit and len(names) > arguments.limit:
            names = [names[index * len(names) // arguments.limit] for index in range(arguments.limit)]
        if not names:
            continue
        results, start = [], time.monotonic()
        for done, name in enumerate(names, 1):
            results.append(check(name))
            if sys.stderr.isatty() or done % 50 == 0:
                print(f"{source} {done}/{len(names)} {time.monotonic() - start:.0f} s {name}", file=sys.stderr)
        print(write_summary(source, results), flush=True)


if __name__ == "__main__":
    main()
