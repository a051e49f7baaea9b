"""Define records whose methods are generated on first use, because a command uses few of the known record types.

Type checkers see `attrs.frozen` and `attrs.define`. Fields are available as soon as they are requested. attrs compiles
`__init__` only: `__eq__`, `__hash__` and `__repr__` are closures over the names of the fields, which saves half of the
time that a record type takes.

A record without converters, validators and bases is plain until its fields are requested: its instances need only
`__init__` and those closures, which take a seventh of the time that attrs takes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
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


COMPARING: Final = frozenset({"eq", "order", "cmp", "hash", "unsafe_hash", "cache_hash", "auto_exc"})
"""Options of attrs that determine how records are compared."""

_LOCK: Final = RLock()

OWN: Final = frozenset(
    {"__init__", "__eq__", "__ne__", "__hash__", "__repr__", "__setattr__", "__delattr__", "__attrs_post_init__"}
    | {"__attrs_pre_init__", "__attrs_init_subclass__", "__slots__"}
)
"""Names in a class that prevent it from being a plain record."""

Record = TypeVar("Record")


class _Later:
    """Deferred decorator that turns a class into a record when its fields are read or it is first instantiated."""

    def __init__(self, how: str, options: dict[str, Any]) -> None:
        self.how, self.options = how, options

    def __call__(self, kind: type) -> type:
        """Return the class, which becomes a record on first use."""
        self.kind = kind
        self.is_waiting = True
        self.is_plain = False
        kind.__attrs_attrs__ = self  # type: ignore[attr-defined]
        if "__init__" not in vars(kind):
            kind.__init__ = self._first()  # type: ignore[misc]
        else:
            self.options = {"init": False, **self.options}
        return kind

    def __get__(self, _record: object, _kind: type) -> Any:
        """Turn the class into a record and return its fields."""
        self.finish()
        return self.kind.__attrs_attrs__  # type: ignore[attr-defined]

    def _first(self) -> Callable[..., None]:
        def __init__(record: object, /, *values: Any, **named: Any) -> None:  # noqa: N807
            self._begin()
            record.__init__(*values, **named)  # type: ignore[misc]

        return __init__

    def _begin(self) -> None:
        """Make a record type usable: as a plain record if possible, else as a finished class of attrs."""
        with _LOCK:
            if self.is_plain:
                return
            self.is_plain = self.is_waiting and _is_plain(self.kind, self.options)
            if self.is_plain:
                _add_plain(self.kind, is_frozen=self.how == "frozen", is_kw_only=bool(self.options.get("kw_only")))
            else:
                self.finish()

    def finish(self) -> None:
        """Turn the class into a record, unless it already is one."""
        import attrs

        with _LOCK:
            if self.is_waiting:
                self.is_waiting = False
                if self.is_plain:
                    for name in (OWN & vars(self.kind).keys()) - {
                        "__init__"
                    }:  # another thread may make an instance now
                        delattr(self.kind, name)
                for base in self.kind.__mro__[1:]:
                    attrs.has(base)
                options = {"init": True, "slots": False, **self.options}
                own = vars(self.kind).keys()
                is_compared = not (COMPARING & options.keys() or {"__eq__", "__ne__", "__hash__"} & own)
                is_shown = not ({"repr", "str"} & options.keys() or "__repr__" in own)
                is_shown &= not hasattr(self.kind, "__attrs_init_subclass__")  # which may remove the representation
                options |= {"eq": False} if is_compared else {}
                options |= {"repr": False} if is_shown else {}
                getattr(attrs, self.how)(self.kind, **options)
                if is_compared:
                    _add_comparison(self.kind, is_hashable=self.how == "frozen")
                if is_shown:
                    _add_repr(self.kind)


def _is_plain(kind: type, options: dict[str, Any]) -> bool:
    """Return whether a class needs only the usual methods of a record."""
    own = vars(kind)
    fields = own.get("__annotations__", {})
    return (
        options.keys() <= {"kw_only"}
        and OWN & own.keys() <= {"__init__"}
        and not any("__attrs_attrs__" in vars(base) or "__slots__" in vars(base) for base in kind.__mro__[1:-1])
        and all(isinstance(annotation, str) and "ClassVar" not in annotation for annotation in fields.values())
        and not any(name.startswith("_") or type(own.get(name)).__module__ == "attr._make" for name in fields)
    )


def _add_plain(kind: Any, *, is_frozen: bool, is_kw_only: bool) -> None:
    """Add the methods of a record whose fields are annotations with or without a default."""
    names = list(vars(kind).get("__annotations__", {}))
    defaults = {name: vars(kind)[name] for name in names if name in vars(kind)}
    taken = [f"{name}=_default_{name}" if name in defaults else name for name in names]
    lines = [f"    _values[{name!r}] = {name}" for name in names]  # no field of a plain record begins with _
    head = f"def __init__(self{', *' if is_kw_only and names else ''}{''.join(f', {one}' for one in taken)}):"
    made: dict[str, Any] = {f"_default_{name}": value for name, value in defaults.items()}
    exec("\n".join([head, "    _values = self.__dict__", *lines]), made)
    made["__init__"].__qualname__ = f"{kind.__qualname__}.__init__"
    made["__init__"].__module__ = kind.__module__
    _compare_by(kind, names, names, is_hashable=is_frozen)
    kind.__repr__ = _represent(names)
    if is_frozen:
        kind.__setattr__ = kind.__delattr__ = _refuse
    kind.__init__ = made["__init__"]  # last, because another thread may call it from now on


def _refuse(_record: object, *_given: object) -> None:
    """Raise the error of attrs if a field of a frozen record is set or deleted."""
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError


def _add_comparison(kind: Any, *, is_hashable: bool) -> None:
    """Add `__eq__`, and `__hash__` where records cannot change, as attrs would."""
    compared = [field.name for field in kind.__attrs_attrs__ if field.eq]
    hashed = [field.name for field in kind.__attrs_attrs__ if (field.eq if field.hash is None else field.hash)]
    _compare_by(kind, compared, hashed, is_hashable=is_hashable)


def _compare_by(kind: Any, compared: list[str], hashed: list[str], *, is_hashable: bool) -> None:
    """Add `__eq__` over the fields in `compared`, and `__hash__` over the fields in `hashed`."""
    read, read_hashed = _read_all(compared), _read_all(hashed)

    def __eq__(record: object, other: object) -> Any:  # noqa: N807
        return read(record) == read(other) if other.__class__ is record.__class__ else NotImplemented

    def __hash__(record: object) -> int:  # noqa: N807
        return hash(read_hashed(record))

    kind.__eq__ = __eq__
    kind.__hash__ = __hash__ if is_hashable else None


def _read_all(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return a function that returns the named fields of a record as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    first = attrgetter(*names) if names else None
    return lambda record: (first(record),) if first else ()


def _add_repr(kind: Any) -> None:
    """Add `__repr__` as attrs would."""
    kind.__repr__ = _represent([one.name for one in kind.__attrs_attrs__ if one.repr])


def _represent(shown: list[str]) -> Callable[[object], str]:
    """Return a `__repr__` that shows the named fields."""
    fill, read = ", ".join(f"{name}={{!r}}" for name in shown).format, _read_all(shown)

    def __repr__(record: object) -> str:  # noqa: N807
        return f"{type(record).__qualname__.rpartition('>.')[2]}({fill(*read(record))})"

    return __repr__


def vary(record: Record, **values: object) -> Record:
    """Return a record with some fields replaced without validation; arrays may replace numbers."""
    changed = object.__new__(type(record))
    vars(changed).update(vars(record), **values)
    return changed
