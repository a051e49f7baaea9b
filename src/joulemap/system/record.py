"""Records whose methods are made when the first of them is: a command makes few of the kinds that it knows of.

To type checkers these are `attrs.frozen` and `attrs.define`. Fields are known as soon as somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from attrs import define as define, frozen as frozen
else:

    def frozen(kind=None, /, **options):
        """Return a class as `attrs.frozen` does; without slots, for it stays the class that it is."""
        return _Later("frozen", options) if kind is None else _Later("frozen", options)(kind)

    def define(kind=None, /, **options):
        """Return a class as `attrs.define` does; without slots, for it stays the class that it is."""
        return _Later("define", options) if kind is None else _Later("define", options)(kind)


_LOCK: Final = RLock()

Record = TypeVar("Record")


class _Later:
    """What makes a class a record when its fields are asked for, or the first of it is made."""

    def __init__(self, how: str, options: dict[str, Any]) -> None:
        self.how, self.options = how, options

    def __call__(self, kind: type) -> type:
        """Return the class, which will be a record."""
        self.kind = kind
        self.is_waiting = True
        kind.__attrs_attrs__ = self  # type: ignore[attr-defined]
        if "__init__" not in vars(kind):
            kind.__init__ = self._first()  # type: ignore[misc]
        else:
            self.options = {"init": False, **self.options}
        return kind

    def __get__(self, _record: object, _kind: type) -> Any:
        """Return the fields."""
        self.finish()
        return self.kind.__attrs_attrs__  # type: ignore[attr-defined]

    def _first(self) -> Callable[..., None]:
        def __init__(record: object, /, *values: Any, **named: Any) -> None:  # noqa: N807
            self.finish()
            record.__init__(*values, **named)  # type: ignore[misc]

        return __init__

    def finish(self) -> None:
        """Make the class a record, unless it is one."""
        import attrs

        with _LOCK:
            if self.is_waiting:
                self.is_waiting = False
                for base in self.kind.__mro__[1:]:
                    attrs.has(base)
                getattr(attrs, self.how)(self.kind, **{"init": True, "slots": False, **self.options})


def vary(record: Record, **values: object) -> Record:
    """Return a record with other values of some fields, which nothing checks: arrays may stand in place of numbers."""
    found = object.__new__(type(record))
    vars(found).update(vars(record), **values)
    return found
