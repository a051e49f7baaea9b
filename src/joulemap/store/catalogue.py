"""Storage of the catalogue as rows (hardware, metrics, models, usage assumptions, grids), and of calibrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.domain.metric import METRICS, Metric
from joulemap.physics.record.calibration import Calibration, CalibrationEntry
from joulemap.physics.record.hardware import Hardware
from joulemap.store.connection import Connection
from joulemap.store.digest import CALIBRATION, Digester
from joulemap.store.insert import insert_columns, insert_records, replace_records
from joulemap.store.literal import execute
from joulemap.store.surface import define_metrics
from joulemap.store.total import renew_totals

if TYPE_CHECKING:
    from attrs import AttrsInstance

    from joulemap.domain.catalogue import Catalogue, CostAssumption, GridRegion, ModelEntry, ShippedWorkload
    from joulemap.domain.event import Event
    from joulemap.domain.offer import Offer
    from joulemap.domain.role import ActionRole
    from joulemap.physics.interval.error_scale import Doubt


def has_catalogue(connection: Connection, catalogue_digest: str) -> bool:
    """Return whether the database contains the catalogue with this digest."""
    sql = "SELECT 1 FROM internal.catalogue_entry WHERE catalogue_digest = ? LIMIT 1"
    return bool(execute(connection, sql, [catalogue_digest]).fetchall())


def write_catalogue(
    connection: Connection,
    catalogue: Catalogue,
    models: Mapping[str, ModelEntry],
    shipped: Mapping[str, ShippedWorkload],
    package_version: str,
    usual_digests: Mapping[str, str] | None = None,
) -> None:
    """Store every new hardware version, and make this catalogue the current one.

    `usual_digests` maps hardware ids to the version that runs use by default; ids without an entry use the catalogue's
    version.
    """
    from joulemap.store.hardware import write_hardware

    known = {
        digest for (digest,) in connection.execute("SELECT hardware_digest FROM internal.hardware_version").fetchall()
    }
    hardware = list(catalogue.hardware.values())
    write_hardware(connection, [one for one in hardware if one.digest not in known], package_version)
    replace_records(
        connection,
        "catalogue_entry",
        hardware,
        catalogue_digest=catalogue.digest,
        hardware_index=range(len(hardware)),
        hardware=[one.id for one in hardware],
        hardware_digest=[one.digest for one in hardware],
        usual_digest=[(usual_digests or {}).get(one.id, one.digest) for one in hardware],
    )
    write_metrics(connection)
    entries = list(models.values())
    traced = [shipped.get(entry.name) for entry in entries]
    replace_records(
        connection,
        "model_entry",
        entries,
        model=[entry.name for entry in entries],
        input_shape=["x".join(map(str, entry.input_shape)) for entry in entries],
        aliases=[" ".join(entry.aliases) for entry in entries],
        traced_parameter_count=[one.parameter_count if one else None for one in traced],
        mac_count=[one.mac_count if one else None for one in traced],
    )


def write_metrics(connection: Connection, metrics: Sequence[Metric] = METRICS) -> None:
    """Replace the stored metrics, which SQL queries use."""
    columns = [one.column for one in metrics]
    replace_records(connection, "metric", metrics, metric_index=range(len(metrics)), column_name=columns)
    connection.execute(define_metrics(metrics).replace("CREATE MACRO", "CREATE OR REPLACE MACRO"))


def write_cost(
    connection: Connection,
    assumptions: Sequence[CostAssumption],
    regions: Sequence[GridRegion],
    offers: Sequence[Offer] = (),
) -> None:
    """Replace the stored usage assumptions, electricity grids, price offers, and the prices derived from offers."""
    from joulemap.domain.offer import summarize_offers

    prices = summarize_offers(offers)
    ways = [one.way for one in offers]
    replace_records(connection, "offer", offers, offer_index=range(len(offers)), way=ways)
    replace_records(connection, "seller_price", prices, price_index=range(len(prices)))
    replace_records(
        connection,
        "cost_assumption",
        [one.quantity for one in assumptions],
        assumption_index=range(len(assumptions)),
        assumption=[one.name for one in assumptions],
    )
    replace_records(
        connection,
        "grid_region",
        [one.intensity for one in regions],
        region_index=range(len(regions)),
        gco2_per_kwh=[one.intensity.value for one in regions],
        **{name: [getattr(one, name) for one in regions] for name in ("region", "name", "year")},
    )


def write_events(connection: Connection, events: Sequence[Event]) -> None:
    """Replace the stored hardware events of each architecture class."""
    replace_records(connection, "event", events, event_index=range(len(events)))
    terms = [(index, term) for index, event in enumerate(events) for term in event.terms]
    replace_records(
        connection,
        "event_term",
        [term for _, term in terms],
        event_index=[index for index, _ in terms],
        architecture=[events[index].architecture for index, _ in terms],
    )


def write_roles(connection: Connection, roles: Sequence[ActionRole]) -> None:
    """Replace the stored roles of actions."""
    replace_records(connection, "action_role", roles)


def write_scales(connection: Connection, table: str, scales: Sequence[AttrsInstance]) -> None:
    """Replace the stored error scales of a wing."""
    replace_records(connection, table, scales, scale_index=range(len(scales)))


def write_doubt(connection: Connection, doubt: Doubt) -> None:
    """Replace the stored uncertainty of predictions, and recompute the intervals of runs."""
    shares = doubt.complete_shares()
    own = doubt.own_half_widths()
    replace_records(connection, "error_scale", doubt.scales, scale_index=range(len(doubt.scales)))
    replace_records(
        connection,
        "power_floor",
        doubt.floors,
        half_width=[one.half_width.value for one in doubt.floors],
        basis=[one.half_width.basis for one in doubt.floors],
        source=[one.half_width.source for one in doubt.floors],
    )
    replace_records(
        connection,
        "error_share",
        shares,
        share=[one.share.value for one in shares],
        basis=[one.share.basis for one in shares],
        source=[one.share.source for one in shares],
    )
    replace_records(
        connection,
        "basis_spread",
        doubt.spreads,
        half_width=[one.half_width.value for one in doubt.spreads],
        own_price_half_width=[price for price, _ in own],
        own_number_half_width=[number for _, number in own],
        basis=[one.half_width.basis for one in doubt.spreads],
        source=[one.half_width.source for one in doubt.spreads],
    )
    renew_totals(connection)


STATIC_MEANING: Final = "power drawn while running, whatever is computed"


def find_calibrations(connection: Connection) -> dict[str, tuple[str, str]]:
    """Return the stored calibrations: digest -> (hardware that it was fitted to, formula version)."""
    rows = connection.execute(
        "SELECT calibration_digest, hardware_digest, formula_version FROM internal.calibration"
    ).fetchall()
    return {str(digest): (str(hardware), str(version)) for digest, hardware, version in rows}


def ensure_calibrations(connection: Connection, used: Iterable[tuple[CalibrationEntry, Calibration, Hardware]]) -> None:
    """Store calibrations that the database lacks, each given with its catalogue entry and hardware."""
    stored = set(find_calibrations(connection))
    for entry, calibration, hardware in used:
        if calibration.digest not in stored:
            _write(connection, entry, calibration, hardware)
            stored.add(calibration.digest)


def _write(connection: Connection, entry: CalibrationEntry, calibration: Calibration, hardware: Hardware) -> None:
    insert_records(
        connection,
        "calibration",
        [calibration],
        calibration_digest=calibration.digest,
        origin=entry.origin,
        measurement_count=calibration.row_count,
        hardware_generation=calibration.generation,
        latency_credibility_fraction=calibration.latency_credibility,
        energy_credibility_fraction=calibration.energy_credibility,
        content_digest="",
    )
    from joulemap.domain.label import PACE_MEANING

    noted = {name: one.note for name, one in hardware.coefficients.items()}
    changed = [
        (
            *("time", name, one.default, one.value, one.unit, one.data_weight, one.is_determined),
            noted.get(name, PACE_MEANING),
        )
        for name, one in calibration.coefficients.items()
    ]
    changed += [
        ("energy", one.name, 1.0, one.factor, "1", one.data_weight, one.is_determined, one.meaning)
        for one in calibration.energy_scales
    ]
    static = calibration.static_power
    if static is not None:
        weighed = (static.data_weight, static.is_determined)
        changed.append(("static", "static_power", static.default, static.value, static.unit, *weighed, STATIC_MEANING))
    if changed:
        names = (
            "part", "name", "default_value", "value", "unit", "data_weight_fraction", "is_determined", "meaning",
        )  # fmt: skip
        insert_columns(
            connection,
            "calibration_coefficient",
            {
                "calibration_digest": [calibration.digest] * len(changed),
                "coefficient_index": range(len(changed)),
                **dict(zip(names, zip(*changed, strict=True), strict=True)),
            },
        )
    errors = calibration.errors
    insert_records(
        connection,
        "calibration_error",
        errors,
        calibration_digest=calibration.digest,
        error_index=range(len(errors)),
        measurement_count=[error.row_count for error in errors],
        **{
            name: [getattr(error, name) or None for error in errors]
            for name in ("runtime", "precision", "batch", "family")
        },
    )
    Digester(connection).seal(CALIBRATION, [calibration.digest])
