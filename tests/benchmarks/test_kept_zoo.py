"""Workloads that ship, kept while others are traced anew."""

from __future__ import annotations

import pytest

from blank import open_blank
from joulemap.system.errors import UsageError
from tools import zoo


def test_what_ships_is_kept_beside_models_traced_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = open_blank()
    zoo.keep(connection, ["mlp", "maxvit_t"])
    kept = connection.execute("SELECT model, batch FROM internal.workload ORDER BY ALL").fetchall()
    assert kept == [(model, batch) for model in ("maxvit_t", "mlp") for batch in (1, 2, 3, 5)]
    monkeypatch.setattr(zoo, "find_outdated", lambda: {"mlp", "maxvit_t"})
    with pytest.raises(UsageError, match="2 built-in models were traced by other rules"):
        zoo.keep(open_blank(), ["mlp", "maxvit_t"])
