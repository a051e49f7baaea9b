"""Who of this process has which database open.

The engine gives all of a process one instance of a database, with one configuration and no wall between its writers:
so readers alike share it, everybody else has it alone, and who comes first is served first. Those who have it stand in
the queue of processes together.
"""

from __future__ import annotations

from threading import Condition
from typing import Final

import attrs

from joulemap.store.turn import Turn, queue_up
from joulemap.system.record import define, frozen


@frozen
class Kind:
    """How a database is open."""

    is_reading: bool
    config: tuple[tuple[str, str], ...] = ()
    later: tuple[tuple[str, str], ...] = ()
    """Settings, as SQL writes them, that are made in this order once it is open."""


@define
class _Use:
    holders: list[Kind] = attrs.field(factory=list)
    queue: list[object] = attrs.field(factory=list)
    turn: Turn | None = None

    def admits(self, ticket: object, kind: Kind) -> bool:
        """Return whether a ticket is the next, and may join those who are in."""
        return self.queue[0] is ticket and (
            not self.holders or (kind.is_reading and all(one == kind for one in self.holders))
        )


_uses: Final[dict[str, _Use]] = {}
_changed: Final = Condition()


def take(path: str, kind: Kind, limit_s: float) -> bool:
    """Wait for a database to be free for one more of a kind; return False where `limit_s` seconds did not suffice."""
    ticket = object()
    with _changed:
        use = _uses.setdefault(path, _Use())
        use.queue.append(ticket)
        try:
            is_in = _changed.wait_for(lambda: use.admits(ticket, kind), limit_s)
            if is_in:
                if not use.holders:
                    use.turn = queue_up(path, is_reading=kind.is_reading)
                use.holders.append(kind)
            return is_in
        finally:
            use.queue.remove(ticket)
            _changed.notify_all()


def find_earlier(path: str) -> str:
    """Return who is in the way among the processes that came earlier to a database that was taken; empty for nobody."""
    turn = _uses[path].turn
    return "" if turn is None or turn.has_come else turn.holder


def is_wanted(path: str) -> bool:
    """Return whether another process waits for a database that was taken."""
    turn = _uses[path].turn
    return turn is not None and turn.is_wanted


def give_back(path: str, kind: Kind) -> None:
    """Let the next of those who wait have the database."""
    with _changed:
        use = _uses[path]
        use.holders.remove(kind)
        if not use.holders and use.turn is not None:
            use.turn.leave()
            use.turn = None
        if not use.holders and not use.queue:
            del _uses[path]
        _changed.notify_all()
