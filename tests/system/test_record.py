"""Records that are finished on first use compare, hash and show themselves as those of attrs do."""

from __future__ import annotations

import attrs
import pytest

from joulemap.system.record import define, frozen


@frozen(kw_only=True)
class Late:
    kind: str
    count: int = 1
    note: str = attrs.field(default="", eq=False, repr=False)


@frozen
class One:
    count: int


@frozen
class Nothing:
    pass


@define
class Changing:
    count: int


@frozen
class Own:
    count: int

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 7


def test_records_are_equal_if_their_class_and_compared_fields_are() -> None:
    assert Late(kind="a", note="x") == Late(kind="a", note="y") != Late(kind="a", count=2)
    assert hash(Late(kind="a", note="x")) == hash(Late(kind="a", note="y"))
    changing: object = Changing(1)
    assert One(1) == One(1) != changing
    assert len({Nothing(), Nothing(), One(1), One(1)}) == 2


def test_a_record_shows_its_fields() -> None:
    assert repr(Late(kind="a", note="x")) == "Late(kind='a', count=1)"
    assert (repr(One(1)), repr(Nothing())) == ("One(count=1)", "Nothing()")


def test_what_can_change_has_no_hash_and_what_a_class_defines_stays() -> None:
    with pytest.raises(TypeError):
        hash(Changing(1))
    assert Changing(1) == Changing(1) != Changing(2)
    assert (Own(1) == Own(2), hash(Own(1))) == (True, 7)


def test_a_plain_record_is_the_same_before_and_after_its_fields_are_requested() -> None:
    @frozen(kw_only=True)
    class Plain:
        count: int
        kind: str = "a"

    before = Plain(count=1)
    assert isinstance(vars(Plain).get("__attrs_attrs__"), tuple) is False
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        before.count = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Plain(kind="b")  # type: ignore[call-arg]
    told = repr(before)
    after = attrs.evolve(before, kind="a")
    assert isinstance(vars(Plain)["__attrs_attrs__"], tuple)
    assert (before, hash(before), repr(after)) == (after, hash(after), told)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        before.count = 2  # type: ignore[misc]


def test_a_field_of_a_plain_record_may_have_any_name() -> None:
    @frozen
    class Found:
        found: int
        record: int
        names: int

    assert (Found(1, 2, 3).found, Found(1, 2, 3).record, Found(1, 2, 3).names) == (1, 2, 3)


def test_a_plain_record_can_be_made_while_another_thread_requests_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    @frozen(kw_only=True)
    class Plain:
        count: int

    made = [Plain(count=1)]
    finish = attrs.frozen

    def finish_late(kind: type, **options: object) -> object:
        made.append(Plain(count=2))  # as of another thread, in the midst of the request
        return finish(kind, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(attrs, "frozen", finish_late)
    assert [field.name for field in attrs.fields(Plain)] == ["count"]
    assert made == [Plain(count=1), Plain(count=2)]
