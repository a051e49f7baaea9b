"""Predictions for measured serving configurations, evaluated if none is stored, and the storage of both."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Final

import attrs

from joulemap.catalog import DATA, catalogue_digest
from joulemap.domain import DEFAULT_MODE, HardwareEntry, HardwareRef, find_entry
from joulemap.physics import BOARD, UNCALIBRATED, BoundaryName
from joulemap.physics.record.calibration import CalibrationEntry
from joulemap.plan import (
    CalibrationUse,
    Source,
    Target,
    ensure_catalogue,
    formula_version,
    known_hardware,
    read_known,
    reading_if_there,
    writing,
)
from joulemap.store import Connection, Digester, execute, insert_records, transaction, utc_now
from joulemap.store.catalogue import has_catalogue
from joulemap.store.digest import SERVING_PREDICTION
from joulemap.store.reason import write_values
from joulemap.system import CatalogueError, Reason, UnknownNameError, UsageError, digest_code, frozen, package_version
from joulemap.system.resource import remember
from joulemap.wing.decoder import decoder_version, list_engine_files
from joulemap.wing.llm.row import Prediction, ServingRow, read_serving_rows

CODE: Final = (
    "wing/decoder/engine", "wing/llm/serving", "wing/llm/client.py", "wing/llm/row.py", "wing/llm/error_scale.py",
    "physics/record/weight.py", "physics/interval",
)  # fmt: skip
"""Code that predictions depend on, in addition to passes, the formulas of the class and its hardware."""

FILES: Final = ("model/decoder.json", "model/family/*.toml")
"""Catalogue data that predictions depend on."""


@frozen(kw_only=True)
class _Target:
    """Hardware of measured rows, with the applicable calibration."""

    name: str
    entry: HardwareEntry | None = None
    """Catalogue entry; None for unknown hardware."""
    mode: str = DEFAULT_MODE
    calibration: CalibrationEntry | None = None
    bound: Target | None = None
    """Board with its mode, calibration and boundary applied; None for unknown hardware."""
    others: tuple[_Target, ...] = ()
    """Other chips that hold a part of the model."""
    refusal: Reason | None = None
    """Reason why none of its rows can be predicted; None for known hardware."""

    @property
    def architecture(self) -> str:
        return self.entry.architecture if self.entry else ""

    @property
    def version(self) -> str:
        """Version of all formulas that a prediction depends on."""
        classes = dict.fromkeys(one.architecture for one in (self, *self.others) if one.entry)
        return "-".join((*map(formula_version, classes), serving_version()))

    @property
    def key(self) -> str:
        """Digest of everything that a prediction depends on except its row."""
        digest = "|".join(one.bound.digest if one.bound else "" for one in (self, *self.others))
        return hashlib.sha256(
            f"{digest}|{self.version}|{self.refusal.text if self.refusal else ''}".encode()
        ).hexdigest()[:16]


@cache
def serving_version() -> str:
    """Return a hash of the code and data that turn passes into served requests, as sixteen hexadecimal digits."""
    return remember("serving", _digest)


def _digest() -> str:
    digest = hashlib.sha256(f"{decoder_version()} {digest_code(*CODE)}".encode())
    paths = (path for pattern in FILES for path in DATA.glob(pattern))
    for path in sorted((*paths, *list_engine_files())):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def ensure_served(source: Source, wanted: Collection[int], use: CalibrationUse) -> frozenset[str]:
    """Predict the measurements with these row numbers if no prediction is stored or the stored one is out of date.

    Return a text `HARDWARE LABEL` for each calibration that applies. A row that cannot be predicted is stored with the
    reason.
    """
    with reading_if_there(source) as connection:
        if connection is None:
            return frozenset()
        rows = {number: row for number, row in read_serving_rows(connection).items() if number in wanted}
        stored = find_predictions(connection)
        is_current = has_catalogue(connection, catalogue_digest())
    if rows and not is_current:  # the intervals must come from the current catalogue
        with writing(source.anchor()) as connection, transaction(connection):
            ensure_catalogue(connection)
    boards = {number: _find_board(row) for number, row in rows.items()}
    targets = {board: _find_target(*board, use) for board in dict.fromkeys(boards.values())}
    keys = {board: target.key for board, target in targets.items()}
    missing = {number: row for number, row in rows.items() if stored.get(number) != keys[boards[number]]}
    for board, target in targets.items():
        group = {number: row for number, row in missing.items() if boards[number] == board}
        if group:
            source.talk(f"{target.name}: {len(group)} measurements of served models")
            predictions = _predict(group, target)
            with writing(source.anchor()) as connection, transaction(connection):
                write_predictions(connection, predictions)
    used = (target for target in targets.values() if target.entry is not None and target.calibration is not None)
    return frozenset(f"{one.entry.id} {one.calibration.label}" for one in used if one.entry and one.calibration)


def predict_served(rows: Sequence[ServingRow], use: CalibrationUse) -> list[ServingPrediction]:
    """Return a prediction of each row, or the reason why there is none; nothing is stored."""
    predictions: dict[int, ServingPrediction] = {}
    for board in dict.fromkeys(map(_find_board, rows)):
        mine = {number: row for number, row in enumerate(rows) if _find_board(row) == board}
        predictions |= {one.serving_measurement_id: one for one in _predict(mine, _find_target(*board, use))}
    return [predictions[number] for number in range(len(rows))]


def _find_board(row: ServingRow) -> tuple[str, tuple[str, ...], BoundaryName]:
    return row.hardware, row.other_chips, row.boundary


def _find_target(name: str, others: Sequence[str], boundary: BoundaryName, use: CalibrationUse) -> _Target:
    """Return the hardware of measured rows at their boundary, and the other chips that hold a part of the model.

    If its power at the wall is unknown, the boundary is the board, and there are no energy predictions.
    """
    ref = HardwareRef.read(name)
    try:
        entry = find_entry(known_hardware([ref.id]), ref.label)
        chosen = entry.mode_of(ref)
        try:
            bound = use.target(entry, chosen, boundary)
        except UsageError:
            bound = use.target(entry, chosen, BOARD)
        beside = tuple(_find_target(one, (), boundary, use) for one in others)
        refusal = next((one.refusal for one in beside if one.refusal), None)
        return _Target(
            name=name,
            entry=entry,
            mode=chosen,
            calibration=use.find(entry),
            bound=bound,
            others=beside,
            refusal=refusal,
        )
    except UnknownNameError as error:
        return _Target(name=name, refusal=attrs.evolve(error.reason, code="unknown_hardware"))


def _predict(rows: Mapping[int, ServingRow], target: _Target) -> Sequence[ServingPrediction]:
    """Return a prediction or a refusal for each row of one chip."""
    from joulemap.wing.llm.serving.predict import predict

    if target.refusal is not None or target.entry is None or target.bound is None:
        refusal = target.refusal or Reason(text=f"{target.name} is unknown", code="unknown_hardware")
        return [_record(number, target, refusal) for number in rows]
    try:
        chips = [(one.entry, one.bound) for one in (target, *target.others) if one.entry and one.bound]
        known = read_known([entry.digest for entry, _ in chips])
        hardware, *others = (bound.bind(known[entry.digest]) for entry, bound in chips)
    except CatalogueError as error:
        return [_record(number, target, attrs.evolve(error.reason, code="no_number")) for number in rows]
    numbers = sorted(rows, key=lambda number: (rows[number].model, number))  # rows of a model share its passes
    predictions = predict([rows[number] for number in numbers], hardware, others)
    return [_record(number, target, one) for number, one in zip(numbers, predictions, strict=True)]


def _record(number: int, target: _Target, prediction: Prediction | Reason) -> ServingPrediction:
    """Return the record to store for a measurement: its prediction, or the reason why there is none."""
    refusal = prediction if isinstance(prediction, Reason) else None
    figures = {} if isinstance(prediction, Reason) else attrs.asdict(prediction)
    return ServingPrediction(
        serving_measurement_id=number,
        prediction_key=target.key,
        architecture=target.architecture,
        vendor=target.entry.vendor if target.entry else "",
        calibration=target.calibration.label if target.calibration else UNCALIBRATED,
        refusal=refusal.text if refusal else None,
        refusal_code=refusal.code if refusal else None,
        refusal_values=write_values(refusal.values) if refusal else None,
        formula_version=target.version,
        package_version=package_version("joulemap"),
        **figures,
    )


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
