"""Peak memory: lifetimes against what Python keeps alive, and the whole against measurements."""

from __future__ import annotations

import runpy
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from chip import MIB, gpu
from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.measurement import load_measurements
from joulemap.construct.library import build_torchvision
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from models import image, trace_zoo

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(BENCHMARK))


@pytest.fixture(scope="module")
def rows(benchmark: dict[str, Any]) -> list[Any]:
    found: list[Any] = benchmark["load_rows"]()
    return found


class _Alive(TorchFunctionMode):
    """Sums the storages that something refers to after each call of torch's Python interface."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.peak = 0
        self._weights = {leaf.untyped_storage()._cdata for leaf in (*module.parameters(), *module.buffers())}
        self._seen: dict[int, tuple[StorageWeakRef, int]] = {}

    def add(self, value: object) -> None:
        for leaf in tree_leaves(value):
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata not in self._weights:
                storage = leaf.untyped_storage()
                self._seen[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self._seen = {key: entry for key, entry in self._seen.items() if not entry[0].expired()}
        self.peak = max(self.peak, sum(size for _, size in self._seen.values()))

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.add(result)
        return result


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "batch"), [("resnet18", 2), ("mobilenet_v2", 1), ("efficientnet_b0", 1), ("convnext_tiny", 3)]
)
def test_the_peak_is_that_of_the_storages_that_python_keeps(name: str, batch: int) -> None:
    module = build_torchvision(name, 224).to("meta").eval()
    given = image(batch, 3, 224)
    with torch.inference_mode(), _Alive(module) as alive:
        alive.add(given)
        module(given)
    work = columns_of(trace_zoo(name, batch=batch))
    assert Widths(work, "fp32").peak_activation_bytes(is_fused=False) == alive.peak


@pytest.mark.parametrize(("run", "streams", "expected"), [(1e6, 1, 1e6 + 32 * MIB), (0.0, 1000, 32 * 32 * MIB)])
def test_workspaces_add_up_to_the_limit_of_streams(
    run: float, streams: int, expected: float, benchmark: dict[str, Any]
) -> None:
    assert benchmark["allocated_bytes"](run, gpu(), stream_count=streams) == expected


@pytest.mark.slow
def test_measured_peaks_are_met_on_families_that_the_workspace_was_not_fitted_to(
    benchmark: dict[str, Any], rows: list[Any]
) -> None:
    assert_close(
        benchmark["fit_workspace"](rows), load_catalogue().find("h100_sxm5").coefficient("allocator_workspace")
    )
    scores = benchmark["score"](rows, held_out=True)

    def sizes(column: str, *precisions: str) -> list[float]:
        return [abs(error) for row, error in scores[column] if not precisions or row.precision in precisions]

    assert len(sizes("rule")) == 296
    assert statistics.mean(sizes("rule")) < 0.035
    assert statistics.median(sizes("rule")) < 0.005
    # less the workspaces: what the model itself needs
    assert statistics.mean(sizes("own")) < 0.08
    assert statistics.mean(sizes("own", "fp16", "bf16", "tf32")) < 0.06
    assert statistics.mean(sizes("read")) > 2 * statistics.mean(sizes("own")), "holding arguments explains the rest"


@pytest.mark.slow
def test_the_streams_that_rows_tell_are_those_that_their_process_had_used(
    benchmark: dict[str, Any], rows: list[Any]
) -> None:
    found = {
        (row.model, row.precision, row.batch, "graph"): count
        for row, count in benchmark["streams"](rows, load_catalogue().find("h200_sxm"))
    }
    told = {
        (row.model, row.precision, row.batch, row.runtime): row.stream_count
        for row in load_measurements()
        if row.stream_count is not None
    }
    assert told == found
