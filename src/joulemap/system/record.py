"""Define records whose methods are generated on first use, because a command uses few of the known record types.

Type checkers see `attrs.frozen` and `attrs.define`. Fields are available as soon as they are requested.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from attrs import define as define, frozen as frozen
else:

    def frozen(kind=None, /, **options):
        """Decorate a class as `attrs.frozen` does; without slots, because the class object must stay the same."""
        return _Later("frozen", options) if kind is None else _Later("frozen", options)(kind)

    def define(kind=None, /, **options):
        """Decorate a class as `attrs.define` does; without slots, because the class object must stay the same."""
        return _Later("define", options) if kind is None else _Later("define", options)(kind)


_LOCK: Final = RLock()

Record = TypeVar("Record")


class _Later:
    """Deferred decorator that turns a class into a record when its fields are read or it is first instantiated."""

    def __init__(self, how: str, options: dict[str, Any]) -> None:
        self.how, self.options = how, options

    def __call__(self, kind: type) -> type:
        """Return the class, to be turned into a record later."""
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
        """Turn the class into a record, unless it already is one."""
        import attrs

        with _LOCK:
            if self.is_waiting:
                self.is_waiting = False
                for base in self.kind.__mro__[1:]:
                    attrs.has(base)
                getattr(attrs, self.how)(self.kind, **{"init": True, "slots": False, **self.options})


def vary(record: Record, **values: object) -> Record:
    """Return a record with some fields replaced without validation; arrays may replace numbers."""
    found = object.__new__(type(record))
    vars(found).update(vars(record), **values)
    return found
