"""Library that stops a program at one of its writes, compiled on demand."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

import attrs

from campaign.trial import UnavailableError

SOURCE: Final = Path(__file__).with_name("fault.c")
LIBRARY: Final = "fault.so"
LEDGER_BYTES: Final = 8192
COUNTS: Final = struct.Struct("QQ")

FaultKind = Literal["count", "before", "after", "torn", "full"]

PAGE_BYTES: Final = 4096


def build(stage: Path) -> None:
    """Compile the library into a folder; raise UnavailableError if that is impossible."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        raise UnavailableError("it needs Linux and a C compiler (cc)")
    library = stage / LIBRARY
    if not library.exists():
        command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o", str(library), str(SOURCE), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise UnavailableError(f"cc failed: {done.stderr.splitlines()[0] if done.stderr else done.returncode}")


@attrs.frozen(kw_only=True)
class Fault:
    """Kind of fault at one call on the files below a folder."""

    kind: FaultKind = "count"
    call: int = 0
    part: int = 500
    """Completed part of a torn write in thousandths."""
    align: int = 1
    """Number of bytes of which the completed part is a multiple."""
    only: str = ""
    """Prefix of the notes of counted calls; empty for all calls."""

    def arm(self, stage: Path, place: Path, ledger: Path) -> dict[str, str]:
        """Empty the ledger; return the environment variables for a program below `place`."""
        ledger.write_bytes(bytes(LEDGER_BYTES))
        return {
            "LD_PRELOAD": str(stage / LIBRARY),
            "FAULT_ROOT": str(place),
            "FAULT_LEDGER": str(ledger),
            "FAULT_KIND": self.kind,
            "FAULT_CALL": str(self.call),
            "FAULT_PART": str(self.part),
            "FAULT_ALIGN": str(self.align),
            "FAULT_ONLY": self.only,
        }


def read_ledger(ledger: Path) -> tuple[int, str]:
    """Return (number of calls, place of the fault, or empty if it did not occur)."""
    content = ledger.read_bytes()
    calls, _ = COUNTS.unpack_from(content)
    return calls, content[COUNTS.size :].split(b"\0", 1)[0].decode(errors="replace")
