"""Kinds of a campaign: method, number of trials, and share of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from campaign import beside, damage, full, fuzz, interrupt, kill, race, reader, stranger, tool
from campaign.trial import Kind

_ALL: Final = (
    Kind(
        name="kill",
        meaning="SIGKILL at random moments",
        count=1000,
        limit_s=180.0,
        share=6.5,
        prepare=kill.prepare,
        run=kill.kill_at_random,
    ),
    Kind(
        name="aimed",
        meaning="SIGKILL before, after and within writes",
        count=1000,
        limit_s=180.0,
        share=7.0,
        prepare=kill.prepare_aimed,
        run=kill.kill_at_write,
    ),
    Kind(
        name="interrupt",
        meaning="Ctrl-C at random moments",
        count=300,
        limit_s=120.0,
        share=1.5,
        prepare=interrupt.prepare,
        run=interrupt.interrupt,
    ),
    Kind(
        name="full",
        meaning="a disk that is full from one write on",
        count=200,
        limit_s=180.0,
        share=1.7,
        prepare=full.prepare,
        run=full.fill_disk,
    ),
    Kind(
        name="damage",
        meaning="damaged database files",
        count=500,
        limit_s=120.0,
        share=2.5,
        prepare=damage.prepare,
        run=damage.ask_damaged,
    ),
    Kind(
        name="beside",
        meaning="files beside a database that are not its own",
        count=60,
        limit_s=120.0,
        share=0.3,
        prepare=beside.prepare,
        run=beside.put_beside,
    ),
    Kind(
        name="race",
        meaning="eight processes that write and four that read, 34 commands each",
        count=1,
        limit_s=900.0,
        share=2.5,
        prepare=race.prepare,
        run=race.race_processes,
    ),
    Kind(
        name="threads",
        meaning="a workspace that eight threads share",
        count=2,
        limit_s=300.0,
        share=0.3,
        prepare=race.prepare,
        run=race.race_threads,
    ),
    Kind(
        name="stranger",
        meaning="files and callers that mean harm: lakes, databases, repositories, measured files, calls",
        count=400,
        limit_s=150.0,
        share=2.0,
        prepare=stranger.prepare,
        run=stranger.attack,
    ),
    Kind(
        name="reader",
        meaning="changed ONNX, TFLite and GGUF files",
        count=400,
        limit_s=120.0,
        share=3.0,
        prepare=reader.prepare,
        run=reader.read_changed,
    ),
    Kind(
        name="tools",
        meaning="odd outputs of a machine's tools, a hundred at a time",
        count=200,
        limit_s=300.0,
        share=0.8,
        prepare=tool.prepare,
        run=tool.read_outputs,
    ),
    Kind(
        name="fuzz",
        meaning="invalid and unusual inputs",
        count=10_000,
        limit_s=90.0,
        share=6.5,
        prepare=fuzz.prepare,
        run=fuzz.feed,
    ),
)

KINDS: Final = {kind.name: kind for kind in _ALL}


def prepare(stage: Path, names: list[str]) -> dict[str, str]:
    """Prepare kinds in a folder; return name -> reason, of the kinds that cannot run here."""
    from campaign.trial import UnavailableError

    refused = {}
    for name in names:
        try:
            KINDS[name].prepare(stage)
        except UnavailableError as error:
            refused[name] = str(error)
    return refused
