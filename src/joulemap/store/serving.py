"""What was measured of served language models, and what is predicted of it, to rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from joulemap.domain.serving import COLUMNS, ServingRow
from joulemap.store.connection import Connection
from joulemap.store.digest import SERVING_MEASUREMENT, SERVING_PREDICTION, Digester
from joulemap.store.literal import execute
from joulemap.store.row import insert_records, next_id, utc_now
from joulemap.system.record import frozen


@frozen(kw_only=True)
class ServingPrediction:
    """What is predicted of one measured configuration, as it is stored; a quantity that is not is None."""

    serving_measurement_id: int
    prediction_key: str
    architecture: str
    vendor: str
    engine: str
    """That is taken; empty where none is."""
    work: str
    """`model`, or `experts` where tokens choose among weights; empty where the model is not known."""
    calibration: str
    refusal: str | None = None
    time_to_first_token_s: float | None = None
    inter_token_latency_s: float | None = None
    request_latency_s: float | None = None
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    energy_per_output_token_j: float | None = None
    energy_per_request_j: float | None = None
    power_w: float | None = None
    formula_version: str
    package_version: str


def write_serving_rows(connection: Connection, rows: Iterable[ServingRow]) -> int:
    """Store those rows that are not stored yet, and return how many those are. The caller holds the transaction."""
    stored = set(read_serving_rows(connection).values())
    fresh = [one for one in dict.fromkeys(rows) if one not in stored]
    first = next_id(connection, "serving_measurement", "serving_measurement_id")
    numbers = range(first, first + len(fresh))
    insert_records(connection, "serving_measurement", fresh, serving_measurement_id=numbers, content_digest="")
    Digester(connection).seal(SERVING_MEASUREMENT, numbers)
    return len(fresh)


def read_serving_rows(connection: Connection) -> dict[int, ServingRow]:
    """Return number -> row of all that are stored."""
    rows = connection.execute(
        f"SELECT serving_measurement_id, {', '.join(COLUMNS)} FROM internal.serving_measurement "
        "ORDER BY serving_measurement_id"
    ).fetchall()
    return {number: ServingRow(**dict(zip(COLUMNS, values, strict=True))) for number, *values in rows}


def find_predictions(connection: Connection) -> dict[int, str]:
    """Return number of a measurement -> key of its prediction, of those that have one."""
    rows = connection.execute("SELECT serving_measurement_id, prediction_key FROM internal.serving_prediction")
    return {int(number): str(key) for number, key in rows.fetchall()}


def write_predictions(connection: Connection, predictions: Sequence[ServingPrediction]) -> None:
    """Store predictions in place of older ones of their measurements. The caller holds the transaction."""
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
