"""Trials: what one worker asks until its time is up, all kinds in turn by their share of the time."""

from __future__ import annotations

import atexit
import math
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from joulemap.system.record import frozen
from laws import alone, chain, choice, door, habit, machine, ordered, pair, spelling, stored
from laws.court import Court
from laws.door import Doors
from laws.question import Question

Try = Callable[[Doors, random.Random], None]


@frozen(kw_only=True)
class Trial:
    """Kind of trial, with its share of the time and the laws that it tries."""

    name: str
    attempt: Try
    share: float
    laws: frozenset[str]


def _of_court(attempt: Callable[[Court, random.Random], None]) -> Try:
    return lambda doors, rng: attempt(doors.court, rng)


def _trial(name: str, attempt: Try, share: float, *laws: str) -> Trial:
    return Trial(name=name, attempt=attempt, share=share, laws=frozenset(laws))


TRIALS: Final = (
    _trial("batches", _of_court(alone.try_batches), 0.2, "cycles exist", "peak", "bandwidth", "busy power", "products",
           "reads", "waits", "steps", "average power", "static power", "memory is there", "time passes",
           "parts of energy", "bases of energy", "range", "batch is not faster", "batch is not cheaper",
           "batch is not smaller", "batch grows"),
    _trial("sizes", _of_court(ordered.try_sizes), 0.08, "size is not faster", "size is not cheaper"),
    _trial("cliffs", _of_court(ordered.try_cliffs), 0.04, "no cliff"),
    _trial("depth", _of_court(ordered.try_depth), 0.08, "depth is not faster", "depth is not cheaper",
           "depth is not smaller"),
    _trial("chips", _of_court(ordered.try_chips), 0.08, "better chip"),
    _trial("numbers", _of_court(ordered.try_numbers), 0.08, "clock", "bandwidth of memory", "units", "limit",
           "cap saves power"),
    _trial("settings", _of_court(ordered.try_settings), 0.06, "graph", "weights are not larger"),
    _trial("alike", _of_court(ordered.try_alike), 0.06, "order of branches", "together", "identity",
           "name of a module"),
    _trial("chains", _of_court(chain.try_cells), 0.02, "a loop is not faster", "cells by hand",
           "steps of a loop", "a cell is its layer", "launches of a cell"),
    _trial("equals", _of_court(chain.try_equals), 0.01, "equal operators"),
    _trial("spellings", _of_court(spelling.try_spellings), 0.2, "spellings take one time",
           "spellings take one energy"),
    _trial("padding", _of_court(spelling.try_padding), 0.1, "padding is time", "padding is energy"),
    _trial("answers", door.try_answers, 0.12, "predict and compare", "analyze and compare", "SQL and compare", "ledger",
           "order of chips", "spelled default", "present value", "third chip", "winner", "probabilities", "first line",
           "next runs", "boundary", "host"),
    _trial("divisions", door.try_divisions, 0.03, "one division", "one residual", "one list of parts"),
    _trial("decisions", choice.try_decisions, 0.04, "on sale", "ties are told", "named chips", "unknown support",
           "one pair", "worse chip", "default chips"),
    _trial("metrics", choice.try_metrics, 0.03, "asked metric", "reasons", "reasons add up", "one mark"),
    _trial("members", choice.try_members, 0.03, "list is its members", "one rule of ties", "winner"),
    _trial("commands", choice.try_commands, 0.03, "one decision of commands", "one rule of sale",
           "a tie is broken by the next metric"),
    _trial("lists", choice.try_lists, 0.03, "list is its members", "one decision of a list", "reasons add up"),
    _trial("servers", choice.try_servers, 0.01, "one pair"),
    _trial("limits", choice.try_limits, 0.03, "scenario is its limits", "own prices", "sweep keeps its limit"),
    _trial("choices", door.try_choices, 0.03, "candidates", "looser limit"),
    _trial("served", door.try_served, 0.04, "sequences", "phases", "prompt", "context", "device memory", "in flight",
           "quantiles", "llm and step", "hits fit", "machine formats"),
    _trial("steps", _of_court(door.try_steps), 0.01, "context"),
    _trial("rows", _of_court(habit.try_rows), 0.02, "batch is not faster"),
    _trial("requests", habit.try_requests, 0.02, "one request", "llm and step", "quantiles",
           "unknown words"),
    _trial("spelled", habit.try_spelled, 0.02, "spelled default"),
    _trial("ports", habit.try_ports, 0.02, "port", "slot of both ends"),
    _trial("links", habit.try_links, 0.02, "port", "asked link"),
    _trial("sets", machine.try_sets, 0.04, "one more device", "no idle device", "printed split",
           "one processor", "channels"),
    _trial("memories", machine.try_memories, 0.01, "usable memory"),
    _trial("hosts", machine.try_hosts, 0.01, "price of a system"),
    _trial("files", machine.try_files, 0.01, "impossible hardware"),
    _trial("adapters", habit.try_adapters, 0.02, "ZeRO", "shards"),
    _trial("unbatched", habit.try_unbatched, 0.02, "a sample", "own networks"),
    _trial("words", habit.try_words, 0.02, "advice runs", "advice keeps the class",
           "short errors", "quick errors", "no control codes"),
    _trial("counts", _of_court(habit.try_counts), 0.02, "counted products", "suppressed boxes"),
    _trial("pairs", pair.try_pairs, 0.12, "an answer or a line", "listed options", "numbers of an answer",
           "machine formats", "spelled default", "MCP and commands", "one first line", "order of chips", "next runs",
           "limits hold", "front"),
    _trial("stored", stored.try_stored, 0.08, "what else is stored", "order of chips"),
    _trial("edges", pair.try_edges, 0.05, "an answer or a line", "listed options", "details are everything"),
    _trial("designs", pair.try_designs, 0.03, "an answer or a line", "no advice is dominated"),
    _trial("fleets", pair.try_fleets, 0.02, "price of the advice"),
    _trial("training", door.try_training, 0.02, "ZeRO", "LoRA", "recompute", "recompute costs", "step parts",
           "shares of a step"),
)  # fmt: skip


@frozen(kw_only=True)
class Job:
    """Share of a run that one process does without a pause, so that an interrupted run has the tallies of most."""

    seed: int
    number: int
    until: float
    """Time at which the run ends, on the clock of `time.time`."""
    laws: tuple[str, ...]
    trial: str = ""
    """Name of the only trial, which is made once; empty for all in turn."""


JOB_S: Final = 30.0
"""Longest time of a job in seconds."""

TURN: Final = (5.0**0.5 - 1.0) / 2.0
"""Share of the list of trials by which each job begins later than the one before: few jobs begin with all of them."""


def make_jobs(seed: int, seconds: float, workers: int, laws: tuple[str, ...]) -> list[Job]:
    """Return the jobs of a run that takes `seconds` on that many processes; `laws` are the only ones to try, or empty.

    Every trial is made once first, so that a short run tries all laws; then all have their shares of the time.
    """
    until, order = time.time() + seconds, _shuffle(seed, laws)
    each = [one.name for one in order] + [""] * (workers * math.ceil(seconds / JOB_S))
    return [Job(seed=seed, number=number, until=until, laws=laws, trial=name) for number, name in enumerate(each)]


def ignore_interrupt() -> None:
    """Leave Ctrl-C to the parent, which stops the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_job(job: Job) -> Court:
    """Return the tally of a job. Its questions follow from its seed and number, and how many from the machine."""
    doors = _open_doors()
    doors.court = Court()
    for number, trial in enumerate(_take_turns(job)):
        try:
            trial.attempt(doors, random.Random(f"{job.seed} {job.number} {number} {trial.name}"))
        except Exception as error:
            words = ("laws", trial.name, f"--seed {job.seed}: {type(error).__name__}: {str(error)[:100]}")
            doors.court.report("no internal error", math.inf, 0.0, (Question(words=words),))
        doors.court.compared["no internal error"] += 1
    return doors.court


@cache
def _open_doors() -> Doors:
    """Return the commands of this process."""
    doors = Doors(Court())
    atexit.register(shutil.rmtree, doors.folder, ignore_errors=True)
    return doors


def _take_turns(job: Job) -> Iterator[Trial]:
    """Yield the trial of a job; without one, trials until time is up, next that with least of its share of the time."""
    chosen = _shuffle(job.seed, job.laws)
    if job.trial:
        yield from [one for one in chosen if one.name == job.trial and time.time() < job.until]
        return
    place = {one.name: number / len(chosen) + job.number * TURN for number, one in enumerate(chosen)}
    taken = {one.name: place[one.name] % 1.0 * one.share for one in chosen}
    until = min(job.until, time.time() + JOB_S)
    while (began := time.time()) < until:
        trial = min(chosen, key=lambda one: taken[one.name] / one.share)
        yield trial
        taken[trial.name] += time.time() - began


def _shuffle(seed: int, laws: tuple[str, ...]) -> list[Trial]:
    """Return the trials of laws, or all, in a random order."""
    chosen = [one for one in TRIALS if not laws or one.laws.intersection(laws)]
    random.Random(seed).shuffle(chosen)
    return chosen
