"""Predictions of the fixed list, in tasks that processes share."""

from __future__ import annotations

import contextlib
import gc
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from joulemap.bundle import load_chips, open_zoo
from joulemap.catalog import ZOO
from joulemap.physics import Hardware
from joulemap.prediction import find_chip, predict
from joulemap.system import JoulemapError, frozen
from joulemap.wing.llm.serve import (
    LOCALSCORE,
    Prediction,
    Room,
    ServingRow,
    check_devices,
    find_decoder,
    find_deployment,
    find_engine,
    list_decoders,
    load_served_doubt,
    predict_together,
)
from joulemap.wing.record.point import (
    DEVICES,
    LENGTHS,
    LOCAL_ENGINE,
    LOCAL_MODELS,
    OUTPUT_TEST,
    OWNED,
    OWNED_CLASSES,
    OWNED_WEIGHTS,
    PROMPT_TEST,
    REQUESTS,
    THREADS,
    list_chips,
    list_models,
    list_servers,
    list_setups,
)
from joulemap.wing.record.row import BATCH, DIGITS, LOCAL, Predicted, find_factor

TOGETHER: Final = 6
"""Whole models of a task: more are hardly faster, and the arrays of 20 large ones take 3 GB."""

LIFE: Final = 34
"""Tasks after which a process ends, because chips under engines stay in its caches: 30 MB per language model.

`max_tasks_per_child` of an executor would do the same, but may deadlock (python/cpython#115634).
"""

Asked = tuple[ServingRow, Hardware]


@frozen
class Task:
    """Part of a record: whole models, or one language model."""

    models: tuple[str, ...]
    is_language: bool


def list_tasks() -> list[Task]:
    """Return the tasks of a record, those of language models first."""
    language = [Task((name,), True) for name in list_decoders()]
    models = list_models()
    starts = range(0, len(models), TOGETHER)
    return [*language, *(Task(tuple(models[start : start + TOGETHER]), False) for start in starts)]


def run_task(task: Task) -> list[Predicted]:
    """Return the predictions of a task; what cannot run is left out."""
    if task.is_language:
        return list(_predict_language(task.models[0]))
    return list(predict_wholes(task.models))


def evaluate(tasks: Sequence[Task], jobs: int, report: Callable[[int, int], None]) -> list[Predicted]:
    """Return the predictions of tasks from a number of processes; `report` gets the tasks that are done, and all."""
    rows: list[Predicted] = []
    for done, some in enumerate(_run(tasks, jobs), 1):
        rows += some
        report(done, len(tasks))
    return rows


def _run(tasks: Sequence[Task], jobs: int) -> Iterator[list[Predicted]]:
    if jobs == 1:
        yield from map(run_task, tasks)
        return
    from concurrent.futures.process import BrokenProcessPool

    from joulemap.system.pool import open_pool, shielded

    some = jobs * LIFE
    try:
        for start in range(0, len(tasks), some):
            with open_pool(jobs, _collect_rarely) as pool:
                with shielded():
                    found = pool.map(run_task, tasks[start : start + some])
                yield from found
    except BrokenProcessPool as error:
        raise JoulemapError("a process was killed, probably for lack of memory: use --jobs 1") from error


def _collect_rarely() -> None:
    """Let the garbage collector leave modules and chips alone: the tasks make millions of records without cycles."""
    load_chips()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def predict_wholes(models: Sequence[str]) -> Iterator[Predicted]:
    """Yield the predictions of whole models on all chips."""
    zoo, setups = open_zoo(ZOO), list_setups()
    cells = [
        (model, one, batch)
        for model in models
        for batch in sorted({batch for one in setups for batch in one.batches})
        if zoo.ships(model, batch)
        for one in setups
        if batch in one.batches
    ]
    found = predict(
        [model for model, _, _ in cells],
        [one.hardware for _, one, _ in cells],
        precision=[one.precision for _, one, _ in cells],
        runtime=[one.runtime for _, one, _ in cells],
        batch=[batch for _, _, batch in cells],
    )
    times = found.latency_s, found.latency_high_s, found.interval_s
    columns = (*times, found.energy_j, found.energy_high_j, found.refusal)
    rows = zip(cells, *(one.tolist() for one in columns), strict=True)
    for (model, one, batch), latency, slowest, interval, energy, highest, refusal in rows:
        if refusal:
            continue
        yield Predicted(
            scope=BATCH,
            hardware=one.hardware,
            runtime=one.runtime,
            engine="",
            precision=one.precision,
            weight_precision="",
            devices=1,
            batch=batch,
            prompt_tokens=None,
            output_tokens=None,
            latency_factor=_divide(slowest, latency),
            ttft_factor=None,
            tpot_factor=None,
            energy_factor=_divide(highest, energy),
            model=model,
            latency_s=latency,
            interval_s=None if f"{interval:.{DIGITS}g}" == f"{latency:.{DIGITS}g}" else interval,
            ttft_s=None,
            tpot_s=None,
            inference_j=energy / batch,
            token_j=None,
        )


def _divide(end: float, value: float) -> float | None:
    return end / value if math.isfinite(end) else None


def _predict_language(model: str) -> Iterator[Predicted]:
    """Yield the predictions of a language model on all chips whose memory holds it."""
    for engine in list_servers():
        asked = [one for name in list_chips(engine=engine) for one in _list_served(model, engine, find_chip(name)[0])]
        yield from predict_rows(asked)
    chips = [find_chip(name)[0] for name in list_chips()]
    owned = [chip for chip in chips if chip.architecture in OWNED_CLASSES]
    yield from predict_rows([one for chip in owned for one in _list_owned(model, chip)])


def _list_served(model: str, engine: str, chip: Hardware) -> Iterator[Asked]:
    """Yield the loads of a server, on as many devices as hold the shortest requests."""
    vendors, decoder = find_engine(engine).vendors, find_decoder(model)
    if decoder is None or (vendors and chip.vendor not in vendors):
        return
    longest = decoder.context_length or math.inf
    for devices in DEVICES:
        rows = [
            ServingRow(
                source=engine,
                hardware=chip.id,
                model=model,
                scope="steady_serving",
                engine=engine,
                device_count=devices,
                tensor_parallel=devices,
                prompt_tokens=float(prompt),
                output_tokens=float(output),
                batch=float(requests),
                burst_fraction=0.0,
            )
            for prompt, output in LENGTHS
            for requests in REQUESTS
            if prompt + output <= longest
        ]
        with contextlib.suppress(JoulemapError):
            check_devices(decoder, devices, 1, 1, 1)
            if fitting := _find_fitting(rows, chip):
                yield from fitting
                return


def _list_owned(model: str, chip: Hardware) -> Iterator[Asked]:
    """Yield the tests of llama-bench, and LocalScore's for its models."""
    for weights in (*OWNED_WEIGHTS, *THREADS.get(model, ())):
        alike: dict[str, Any] = {"source": OWNED, "hardware": chip.id, "model": model, "weight_precision": weights}
        rows = [
            ServingRow(**alike, scope="prefill_step", engine=OWNED, prompt_tokens=float(PROMPT_TEST)),
            ServingRow(**alike, scope="decode_step", engine=OWNED, prompt_tokens=0.0, output_tokens=float(OUTPUT_TEST)),
        ]
        if model in LOCAL_MODELS and weights in OWNED_WEIGHTS:
            rows.append(ServingRow(**alike, scope="request", engine=LOCAL_ENGINE, prompt_kind=LOCALSCORE))
        with contextlib.suppress(JoulemapError):
            yield from _find_fitting(rows, chip)


def _find_fitting(rows: Sequence[ServingRow], chip: Hardware) -> list[Asked]:
    """Return the rows of which a device holds the weights and one sequence, each with the chip.

    The rows are of one deployment, or of engines with equal memory. Raises as `find_deployment` does.
    """
    if not rows:
        return []
    room = Room(deployment=find_deployment(rows[0], chip))
    return [(row, chip) for row in rows if room.sequences(row.prompt_tokens or 0.0, row.output_tokens or 0.0, 1.0) >= 1]


def predict_rows(asked: Sequence[Asked]) -> Iterator[Predicted]:
    """Yield the predictions of measured configurations; what cannot run is left out."""
    doubt = load_served_doubt()
    for (row, chip), one in zip(asked, predict_together(asked), strict=True):
        if not isinstance(one, Prediction):
            continue
        widths = doubt.find_half_widths(
            one, vendor=chip.vendor, hardware=chip.id, architecture=chip.architecture, scope=row.scope
        )
        deployment = find_deployment(row, chip)
        energy = one.energy_per_output_token_j if row.output_tokens else one.energy_per_request_j
        energy_name = "energy_per_output_token_j" if row.output_tokens else "energy_per_request_j"
        yield Predicted(
            scope=LOCAL if row.prompt_kind == LOCALSCORE else row.scope,
            hardware=chip.id,
            runtime="",
            engine=row.engine,
            precision=deployment.precision,
            weight_precision=deployment.weight_precision,
            devices=deployment.world,
            batch=round(row.batch),
            prompt_tokens=None if row.prompt_tokens is None else round(row.prompt_tokens),
            output_tokens=None if row.output_tokens is None else round(row.output_tokens),
            latency_factor=find_factor(widths.get("request_latency_s")),
            ttft_factor=find_factor(widths.get("time_to_first_token_s")),
            tpot_factor=find_factor(widths.get("inter_token_latency_s")),
            energy_factor=find_factor(widths.get(energy_name)),
            model=row.model,
            latency_s=one.request_latency_s,
            interval_s=None,
            ttft_s=one.time_to_first_token_s,
            tpot_s=one.inter_token_latency_s,
            inference_j=None if row.output_tokens else energy,
            token_j=energy if row.output_tokens else None,
        )
