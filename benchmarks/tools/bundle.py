"""Write the chips that `joulemap.predict` reads: `make bundle`.

Chips are planned and bound as for runs with default settings, so a prediction equals a stored run. The user's own
hardware and calibrations take no part.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from joulemap.bundle.chip import CALIBRATION, CHIP, DOUBT, FILE, HELD_OUT, REPLACED
from joulemap.bundle.version import STAMP, check_stamp, form_stamp
from joulemap.catalog.calibration import VARIABLE as OWN_CALIBRATIONS, locate, read_calibration
from joulemap.catalog.digest import VARIABLE as OWN_HARDWARE
from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.family import list_members, load_member
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.interval.error_record import HeldOutErrors, collect_held_out
from joulemap.physics.interval.error_scale import Doubt
from joulemap.physics.record.calibration import CalibrationEntry
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.anchor import find_anchors
from joulemap.plan.model import find_outdated
from joulemap.plan.run import Plan, plan_runs
from joulemap.system.errors import CatalogueError, ModelError
from tools.packed import Writer, write_pack

MODEL = "resnet50"
"""Model of the plan; chips are the same for every model."""


def plan_chips() -> Plan:
    """Return the plan of all chips of the catalogue and of its families, with default settings."""
    ids = dict.fromkeys((*load_catalogue().hardware, *list_members()))
    return plan_runs((MODEL,), Settings(hardware=tuple(ids)))


def bind_chips(plan: Plan) -> dict[str, Hardware]:
    """Return id -> chip of a plan, with all modifiers of its runs."""
    described = {
        entry.id: plan.selection.own.get(entry.id) or load_catalogue().hardware.get(entry.id) or load_member(entry.id)
        for entry, _ in plan.selection.pairs
    }
    find_anchors(described.values())  # together, which takes a fraction of the time
    return {entry.id: plan.target(entry, mode).bind(described[entry.id]) for entry, mode in plan.selection.pairs}


def find_calibrations(plan: Plan) -> dict[str, CalibrationEntry]:
    """Return id of a chip -> the calibration that its runs have."""
    entries = {entry.id: plan.calibration.find(entry) for entry, _ in plan.selection.pairs}
    return {name: entry for name, entry in entries.items() if entry is not None}


def write_chips(
    path: Path, chips: Mapping[str, Hardware], calibrations: Mapping[str, str], doubt: Doubt, held_out: HeldOutErrors
) -> None:
    """Write chips to a file, and note its version."""
    values: dict[str, object] = {f"{CHIP}{name}": chip for name, chip in sorted(chips.items())}
    values |= {CALIBRATION: dict(sorted(calibrations.items())), DOUBT: doubt, HELD_OUT: held_out}
    write_pack(path, {CHIP: Writer(REPLACED).write(values)})
    STAMP.write_text(form_stamp(path.read_bytes()), encoding="utf-8")


def main() -> None:
    """Write the bundle and print its size, unless there is one of this version."""
    with contextlib.suppress(CatalogueError):
        check_stamp(FILE)
        STAMP.touch()
        return
    if outdated := sorted(find_outdated()):
        raise ModelError(
            f"{len(outdated)} built-in models were traced by other rules, such as {outdated[0]}: `make zoo`"
        )
    os.environ.pop(OWN_HARDWARE, None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[OWN_CALIBRATIONS] = folder
        plan = plan_chips()
        used = find_calibrations(plan)
        held_out = collect_held_out(read_calibration(locate(one)) for one in dict.fromkeys(used.values()))
        digests = {name: one.digest for name, one in used.items()}
        FILE.parent.mkdir(exist_ok=True)
        write_chips(FILE, bind_chips(plan), digests, load_doubt(), held_out)
    print(f"{len(plan.selection.pairs):,} chips, {FILE.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
