"""Find, identify, read and write calibration files.

The calibration of a chip is `ID.toml` in the user's folder, or else the built-in one. Any other calibration is
selected by name or file. Finding a file and its digest needs no parsing, because stored runs were evaluated with the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.physics.record.calibration import (
    Calibration,
    CalibrationEntry,
    CalibrationError,
    EnergyScale,
    FittedValue,
)
from joulemap.physics.record.reference import ActionKey
from joulemap.system.errors import CatalogueError, UnknownNameError
from joulemap.system.file import FileError, make_folder, read_bytes, write_text
from joulemap.system.resource import remember

if TYPE_CHECKING:
    from joulemap.catalog.schema import CalibrationFile, FittedEntry, FittedStaticEntry
    from joulemap.domain.catalogue import HardwareEntry
    from joulemap.physics.record.hardware import Hardware

SHIPPED: Final = DATA / "calibration"
"""Folder of built-in calibrations."""

VARIABLE: Final = "JOULEMAP_CALIBRATION"
"""Environment variable that names the folder of the user's calibrations."""

HEADERS: Final = ("hardware", "hardware_digest", "formula_version", "generation")
"""Keys at the head of a calibration file, before all tables."""

HEAD: Final = """\
# Coefficients of {hardware} fitted to measurements: `joulemap calibrate {hardware}` makes the same file from the same
# measurements. Every number belongs to the fit as a whole: fit again rather than change one.
"""


def own_folder() -> Path:
    """Return the folder of the user's calibrations: `$JOULEMAP_CALIBRATION` or joulemap's folder in the user's data."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "joulemap" / "calibration"


def find_calibration(name: str) -> CalibrationEntry | None:
    """Return the calibration with this name; None if there is none.

    The user's calibrations come before built-in ones. The file is not read, so the calibration may be for other
    hardware than `name`.
    """
    for folder in (own_folder(), SHIPPED):
        path = folder / f"{name}.toml"
        if os.path.isfile(path):
            return _entry(path, name)
    return None


def find_shipped(hardware: HardwareEntry | Hardware) -> CalibrationEntry | None:
    """Return the built-in calibration of a chip, or else that of its hardware generation; None if there is none."""
    path = SHIPPED / f"{hardware.id}.toml"
    return _entry(path, hardware.id) if os.path.isfile(path) else shipped_generations().get(hardware.generation)


@cache
def shipped_generations() -> Mapping[str, CalibrationEntry]:
    """Return generation -> its built-in calibration; of several, the first by name. Only heads of files are read."""
    by_generation: dict[str, CalibrationEntry] = {}
    for name, generation in remember("generations", _read_generations).items():
        by_generation.setdefault(generation, _entry(SHIPPED / f"{name}.toml", name))
    return by_generation


def _read_generations() -> dict[str, str]:
    """Return name -> hardware generation, for the built-in calibrations that a generation inherits."""
    import tomllib

    heads = {path.stem: _read(path).decode().partition("\n[")[0] for path in sorted(SHIPPED.glob("*.toml"))}
    generations = {name: tomllib.loads(head).get("generation") for name, head in heads.items()}
    return {name: generation for name, generation in generations.items() if isinstance(generation, str)}


def find_named(name: str) -> CalibrationEntry:
    """Return the calibration with the name or file that the user gave; UnknownNameError or CatalogueError."""
    if name.endswith(".toml") or os.sep in name:
        path = Path(name).expanduser()
    else:
        entry = find_calibration(name)
        if entry is None:
            raise UnknownNameError("calibration", name, known_names(), "or auto, own, none, or a file")
        path = locate(entry)
    return read_calibration(path).entry(_find_origin(path))


def known_names() -> list[str]:
    """Return the names of all available calibrations."""
    return sorted({path.stem for folder in (own_folder(), SHIPPED) for path in folder.glob("*.toml")})


def locate(entry: CalibrationEntry) -> Path:
    """Return the path of a calibration's file."""
    return SHIPPED / f"{entry.name}.toml" if entry.origin == "shipped" else Path(entry.origin)


def _entry(path: Path, hardware: str) -> CalibrationEntry:
    return CalibrationEntry(hardware=hardware, name=path.stem, digest=_digest(_read(path)), origin=_find_origin(path))


def _find_origin(path: Path) -> str:
    return "shipped" if path.parent == SHIPPED else str(path)


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileError as error:
        raise CatalogueError(f"{path}: cannot be read: {error}") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def read_calibration(path: Path) -> Calibration:
    """Read the calibration of a file; CatalogueError names file, key and reason.

    `Hardware.calibrated` checks that it fits a chip.
    """
    from joulemap.catalog.parser import name_file, read_file
    from joulemap.catalog.schema import CalibrationFile

    file, content = read_file(path, CalibrationFile)
    try:
        return _resolve(file, path.stem, _digest(content))
    except (ValueError, TypeError) as error:
        raise CatalogueError(f"{name_file(path)}: {error}") from error


def parse_calibration(text: str, name: str) -> Calibration:
    """Parse the text of a calibration file; raises like `read_calibration`."""
    from joulemap.catalog.parser import parse_content
    from joulemap.catalog.schema import CalibrationFile

    content = text.encode()
    return _resolve(parse_content(name, content, CalibrationFile), name, _digest(content))


def _resolve(file: CalibrationFile, name: str, digest: str) -> Calibration:
    data: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in attrs.asdict(file.data).items()
    }
    calibration = Calibration(
        name=name,
        **{name: getattr(file, name) for name in HEADERS},
        data_digest=data.pop("digest"),
        **data,
        coefficients={},
        energy_scales=tuple(
            EnergyScale(**{**attrs.asdict(scale), "actions": split_actions(scale.actions)})
            for scale in file.energy_scales
        ),
        errors=tuple(file.accuracy.errors),
        digest=digest,
    )
    _check_once("coefficients", [entry.name for entry in file.coefficients])
    _check_once("energy_scales", [scale.name for scale in calibration.energy_scales])
    _check_once("energy_scales", [".".join(action) for scale in calibration.energy_scales for action in scale.actions])

    static = file.static_power
    return attrs.evolve(
        calibration,
        coefficients={entry.name: _fitted(f"coefficients.{entry.name}", entry) for entry in file.coefficients},
        static_power=None if static is None else _fitted("static_power", static),
    )


def _fitted(key: str, entry: FittedEntry | FittedStaticEntry) -> FittedValue:
    try:
        return FittedValue(**{"unit": "W", **attrs.asdict(entry, filter=attrs.filters.exclude("name"))})
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def split_actions(names: Iterable[str]) -> tuple[ActionKey, ...]:
    """Split each `component.action` into (component, action)."""
    parts = (name.partition(".") for name in names)
    return tuple((component, action) for component, _, action in parts)


def _check_once(key: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{key}: {name} is listed twice")
        seen.add(name)


def calibration_text(calibration: Calibration) -> str:
    """Return the text of a calibration file; equal records give equal bytes."""
    from joulemap.catalog.schema import FittedDataEntry

    lines = [HEAD.format(hardware=calibration.hardware)]
    lines += _pairs({name: getattr(calibration, name) for name in HEADERS})
    lines += ["", "[data]"]
    beside = [field.name for field in attrs.fields(FittedDataEntry) if field.name != "digest"]
    lines += _pairs({"digest": calibration.data_digest, **{name: getattr(calibration, name) for name in beside}})
    if calibration.static_power is not None:
        lines += ["", "[static_power]"]
        lines += _pairs(attrs.asdict(calibration.static_power, filter=attrs.filters.exclude("unit")))
    for name, fitted in calibration.coefficients.items():
        lines += ["", "[[coefficients]]"]
        lines += _pairs({"name": name, **attrs.asdict(fitted)})
    for scale in calibration.energy_scales:
        lines += ["", "[[energy_scales]]"]
        lines += _pairs({name: getattr(scale, name) for name in ("name", "factor", "data_weight", "meaning")})
        lines += _pairs({"actions": [".".join(action) for action in scale.actions]})
    lines += ["", "[accuracy]", "errors = ["]
    lines += [f"    {{ {', '.join(_pairs(_error(error)))} }}," for error in calibration.errors]
    lines += ["]"]
    return "\n".join([*lines, ""])


def _error(error: CalibrationError) -> dict[str, Any]:
    """Return the fields of a calibration's error that differ from their defaults."""
    fields = attrs.fields(CalibrationError)
    return {field.name: value for field in fields if (value := getattr(error, field.name)) != field.default}


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_literal(value)}" for name, value in values.items()]


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(one) for one in value)}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def write_calibration(calibration: Calibration, path: Path, inputs: Iterable[Path] = ()) -> None:
    """Write a calibration file atomically and create its folder; raises like `write_text`."""
    make_folder(path.parent)
    write_text(path, calibration_text(calibration), inputs)
