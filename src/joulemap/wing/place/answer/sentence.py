"""Sentences on why a mixture of devices wins or loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from joulemap.present.cell import show_count, show_quantity, show_share
from joulemap.system.units import FS_PER_S

if TYPE_CHECKING:
    from joulemap.domain.box import Goal
    from joulemap.wing.place.box.candidate import Candidate

WORDS: Final = {"latency": "time of a batch", "throughput": "time between batches", "energy": "energy of a batch"}


def explain(found: Sequence[Candidate], goal: Goal) -> str:
    """Return why the mixture wins or loses; `found` lists candidates, best first."""
    best = found[0]
    alone = next((one for one in found if one.form == "alone" and not one.refusal), None)
    mixed = next((one for one in found if one.form != "alone" and not one.refusal), None)
    if alone is None:
        refused = "; ".join(f"{one.label}: {one.refusal}" for one in found if one.form == "alone")
        return f"No device runs it alone ({refused}), so it is split; {_describe_copies(best)}"
    if mixed is None:
        return f"{alone.label} runs the whole model; no mixture of devices is possible."
    ratio = mixed.value(goal) / alone.value(goal)
    if best.form == "alone":
        more = f"takes {show_share(ratio - 1.0)} more {WORDS[goal]}"
        nearest = f"the best mixture, {mixed.label} ({mixed.form}), {more}"
        return f"{alone.label} alone wins: {nearest}; {_describe_copies(mixed)}"
    less = f"takes {show_share(1.0 - ratio)} less {WORDS[goal]} than {alone.label} alone"
    if best.form == "side by side":
        return f"{best.label} {less}: each device runs the whole model; the rate is limited by {best.limit}."
    return f"{best.label} {less}; {_describe_copies(best)}"


def _describe_copies(one: Candidate) -> str:
    if one.run is None:
        return "no values are copied."
    copied = show_quantity(sum(copy.byte_count for copy in one.run.copies), "B")
    seconds = show_quantity(one.run.copy_fs / FS_PER_S, "s")
    verb = "takes" if len(one.run.copies) == 1 else "take"
    told = f"{show_count(len(one.run.copies), 'copy', 'copies')} ({copied} in total) {verb} {seconds} of "
    return f"{told}{show_quantity(one.latency_s, 's')}."
