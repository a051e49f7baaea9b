"""Storage of measurements of served language models, and of their predictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from joulemap.store import Connection, Digester, execute, insert_records, next_id, utc_now
from joulemap.store.digest import SERVING_MEASUREMENT, SERVING_PREDICTION
from joulemap.system import frozen
from joulemap.wing.llm.row import COLUMNS, Prediction, ServingRow


@frozen(kw_only=True)
class ServingPrediction(Prediction):
    """Prediction of one measured serving configuration, or the reason for none, as it is stored."""

    serving_measurement_id: int
    prediction_key: str
    architecture: str
    vendor: str
    calibration: str
    refusal: str | None = None
    refusal_code: str | None = None
    refusal_values: str | None = None
    """Values of the reason as JSON."""
    formula_version: str
    package_version: str


def write_serving_rows(connection: Connection, rows: Iterable[ServingRow]) -> int:
    """Store serving measurements that are not stored yet; return their number. The caller holds the transaction."""
    stored = set(read_serving_rows(connection).values())
    fresh = [one for one in dict.fromkeys(rows) if one not in stored]
    first = next_id(connection, "serving_measurement", "serving_measurement_id")
    numbers = range(first, first + len(fresh))
    insert_records(connection, "serving_measurement", fresh, serving_measurement_id=numbers, content_digest="")
    Digester(connection).seal(SERVING_MEASUREMENT, numbers)
    return len(fresh)


def read_serving_rows(connection: Connection) -> dict[int, ServingRow]:
    """Return id -> row of all stored serving measurements."""
    rows = connection.execute(
        f"SELECT serving_measurement_id, {', '.join(COLUMNS)} FROM internal.serving_measurement "
        "ORDER BY serving_measurement_id"
    ).fetchall()
    return {number: ServingRow(**dict(zip(COLUMNS, values, strict=True))) for number, *values in rows}


def find_predictions(connection: Connection) -> dict[int, str]:
    """Return measurement id -> prediction key, for serving measurements with a stored prediction."""
    rows = connection.execute("SELECT serving_measurement_id, prediction_key FROM internal.serving_prediction")
    return {int(number): str(key) for number, key in rows.fetchall()}


def write_predictions(connection: Connection, predictions: Sequence[ServingPrediction]) -> None:
    """Store predictions, which replace older ones of the same measurements. The caller holds the transaction."""
    numbers = [one.serving_measurement_id for one in predictions]
    replaced = execute(
        connection,
        "DELETE FROM internal.serving_prediction WHERE list_contains($numbers, serving_measurement_id) "
        "RETURNING content_digest",
        {"numbers": numbers},
    ).fetchall()
    insert_records(connection, "serving_prediction", predictions, created_at=utc_now(), content_digest="")
    digester = Digester(connection)
    digester.change_set(SERVING_PREDICTION, (), [digest for (digest,) in replaced])
    digester.seal(SERVING_PREDICTION, numbers)
