"""Memory limit for building a model, and a counter of the memory allocated meanwhile."""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from joulemap.system.errors import ModelError
from joulemap.trace.tensor import tensors_in

SHARE: Final = 0.5
"""Share of the free memory that building a model may take if no limit is given."""

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")
_LIMITS: Final = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
"""Files of a control group with (limit, use) of its memory, in versions 2 and 1 of control groups."""


def allowed_bytes(limit_bytes: float | None) -> float:
    """Return `limit_bytes`, or half of the free memory if it is None."""
    return SHARE * free_bytes() if limit_bytes is None else limit_bytes


def free_bytes() -> float:
    """Return the bytes of memory available to this process, on the machine and within its control groups."""
    return min(_free_of_machine(), *_free_of_groups(), math.inf)


def _free_of_machine() -> float:
    with contextlib.suppress(OSError):
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        if found:
            return 1024.0 * int(found[1])
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        with contextlib.suppress(AttributeError, ValueError, OSError):  # AttributeError on Windows
            return float(os.sysconf(name) * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _free_of_groups() -> Iterator[float]:
    """Yield the bytes that each control group of this process may still allocate; its file cache counts as free."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        top = _GROUPS / "memory" if "memory" in controllers.split(",") else _GROUPS
        own = top / place.lstrip("/")
        for folder in (own, *own.parents):
            if not folder.is_relative_to(top):
                break
            for limit, used in _LIMITS:
                with contextlib.suppress(OSError, ValueError):
                    most, now = int((folder / limit).read_text()), int((folder / used).read_text())
                    yield max(0.0, float(most - now + _cached_bytes(folder)))


def _cached_bytes(folder: Path) -> int:
    with contextlib.suppress(OSError):
        found = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


def write_bytes(byte_count: float) -> str:
    """Return bytes in readable form: `3.6 GB`."""
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if byte_count >= scale:
            return f"{byte_count / scale:.3g} {prefix}B"
    return f"{byte_count:.3g} B"


_META: Final = torch.device("meta")


class Meter(TorchDispatchMode):
    """Counter of allocated tensor bytes, which raises ModelError before they exceed a limit.

    An operator on tensors with and without storage runs without storage, because a constructor may compute values from
    weights that have none.
    """

    def __init__(self, limit_bytes: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.limit_bytes: Final = limit_bytes
        self.needed_bytes = 0
        """Bytes needed when the limit was reached; 0 if it was not."""
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self._held_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if _is_all_meta(args, kwargs):
            return func(*args, **kwargs)
        args, kwargs = _on_one_device(func, args, kwargs)
        ahead = _foresee(func, args, kwargs)
        if ahead:
            self._check(ahead)
        result = func(*args, **kwargs)
        for leaf in tensors_in(result):
            if not leaf.is_meta and not isinstance(leaf, FakeTensor):
                self._hold(leaf)
        return result

    def _hold(self, tensor: torch.Tensor) -> None:
        try:
            storage = tensor.untyped_storage()
            byte_count = storage.nbytes()
        except (NotImplementedError, RuntimeError):  # the tensor has no storage of its own
            return
        known = self._held.get(storage._cdata)
        if known is not None and not known[0].expired():
            self._held_bytes -= known[1]
        self._held[storage._cdata] = StorageWeakRef(storage), byte_count
        self._held_bytes += byte_count
        self._check(0)

    def _check(self, ahead_bytes: int) -> None:
        if self._held_bytes + ahead_bytes <= self.limit_bytes:
            return
        self._held = {key: value for key, value in self._held.items() if not value[0].expired()}
        self._held_bytes = sum(byte_count for _, byte_count in self._held.values())
        if self._held_bytes + ahead_bytes > self.limit_bytes:
            self.needed_bytes = self._held_bytes + ahead_bytes
            raise ModelError(f"more memory is needed than the limit of {write_bytes(self.limit_bytes)}")


def _is_all_meta(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether all tensors of a call are plain arguments without storage. False may also mean nested tensors."""
    found = False
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            if not value.is_meta:
                return False
            found = True
        elif isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
            return False
    return found or kwargs.get("device") == _META


def _on_one_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, all without storage if one of them has none. Raise RuntimeError if that would
    lose a value.
    """
    tensors = tensors_in((args, kwargs))
    if not any(tensor.is_meta for tensor in tensors) or all(tensor.is_meta or not tensor.dim() for tensor in tensors):
        return args, kwargs
    if func._schema.is_mutable and not args[0].is_meta and "batch_norm" not in func.name():
        raise RuntimeError(f"{func.name()} writes values computed from absent weights to a tensor")
    return tree_map(_without_storage, args), tree_map(_without_storage, kwargs)


def _without_storage(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) and value.dim() > 0 else value


def _foresee(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the bytes that an operator will allocate; 0 if shapes alone do not determine them."""
    if func.is_view or func._schema.is_mutable:
        return 0
    tensors = tensors_in((args, kwargs))
    if any(tensor.is_meta for tensor in tensors):
        return 0
    if not tensors and torch.device(kwargs.get("device") or "cpu").type == "meta":
        return 0
    if len(tensors) == 1 and _is_pointwise(func):
        return tensors[0].numel() * tensors[0].element_size()
    options = {**kwargs, "device": torch.device("meta")} if not tensors else kwargs
    try:
        made = func(*tree_map(_without_storage, args), **tree_map(_without_storage, options))
    except Exception:
        return 0
    return sum(leaf.numel() * leaf.element_size() for leaf in tensors_in(made) if leaf.is_meta)


def _is_pointwise(func: Any) -> bool:
    return torch.Tag.pointwise in func.tags
