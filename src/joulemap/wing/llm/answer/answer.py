"""Answer for a served language model: cost per token, memory fit, bottlenecks and the best hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.answer.candidate import read_usage
from joulemap.answer.computed import make_table
from joulemap.answer.price import price_parameters
from joulemap.answer.scope import find_stored_scope, widen
from joulemap.domain.default import SERVED, USAGE
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.settings import Price, Serving, Settings, Usage, check_name
from joulemap.plan.hold import find_targets, holding_plans
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.row.cost import AssumedNumber
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.store.run import AssumedEnergy
from joulemap.system.errors import UsageError
from joulemap.wing.llm.answer.demand import (
    OK,
    SIXTEEN_BITS,
    UNSUPPORTED,
    Case,
    Question,
    choose_stored,
    divide,
    find_ids,
    key_runs,
    list_cases,
    list_precisions,
    refuse,
)
from joulemap.wing.llm.answer.document import LlmAnswer
from joulemap.wing.llm.answer.load import LoadRow, Stored, StoredCase, name_case, serve_load
from joulemap.wing.llm.answer.pool import PoolRow, serve_pools
from joulemap.wing.llm.answer.row import ServedRow, form_rows, serve
from joulemap.wing.llm.row import ServedPhase, ServedWinner
from joulemap.wing.llm.source import find_mixed, open_boxes, read_decoder

if TYPE_CHECKING:
    from joulemap.domain.configuration import Runtime
    from joulemap.wing.llm.decoder.config import Decoder
    from joulemap.wing.llm.serving.batch import BatchCost

SERVING: Final = Serving()
"""Default request: prompts of 2,048 tokens and answers of 256, on the fewest devices that hold the model."""

HARDWARE: Final = ("h100_sxm5", "h200_sxm", "b200_sxm", "mi300x", "gaudi3", "tpu_v6e")
"""Default hardware, on which models of all sizes are served."""

OWN_LAYER: Final = "layer"
"""Value of `--draft` for one more layer like the model's last, as in multi-token prediction (MTP) and EAGLE."""

PADDED: Final = 0.01
"""Maximum relative difference of vocabulary sizes with the same tokens; padding rows cause it."""


def llm(
    source: Source,
    model: str,
    settings: Settings = SERVED,
    *,
    serving: Serving = SERVING,
    usage: Usage = USAGE,
    prices: Sequence[Price] = (),
) -> LlmAnswer:
    """Return how each hardware serves a language model: latency, energy and cost per token, memory fit, bottlenecks.

    `model` is a built-in name, a `config.json` or its folder, or a traced model with a KV cache. Each configuration
    has two runs: the prefill pass, and a decode step at the middle of the output. Both are of one of its devices;
    energies in the answer are of all of them. A configuration that does not fit or lacks the precision is a row with
    the reason.

    Raise UnknownNameError for an unknown model, hardware or engine, UsageError for an invalid question, ModelError for
    a model that cannot be traced, UnsupportedError if nothing serves the model.
    """
    from joulemap.catalog.stack import describe_engine

    question, whole, cases = list_served(source, model, settings, serving)
    is_chosen = is_choice(settings) or bool(serving.prefill_on)
    lacking = [] if is_chosen else [case for case in cases if case.status == UNSUPPORTED]
    served = [case for case in cases if case.status == OK]
    if not served:
        raise refuse(cases)
    costs = serve(question, served)
    stored = choose_stored(served)
    plans = divide(question, whole, list(dict.fromkeys(stored)))
    with holding_plans(source, plans, needs_catalogue=True, has_ledger=False) as (connection, held):
        ids = find_ids(question, stored, key_runs(held))
        found = _read(connection, question, served, stored, costs, ids, usage, prices, settings.takes_all)
    kept = [case for case in cases if case not in lacking]
    rows = form_rows(question, kept, costs, found["phases"])
    pools, loads, not_loaded = _serve_load(question, whole, kept, _know(served, found))
    return LlmAnswer(
        model=question.decoder.name,
        serving=serving,
        engine=describe_engine(serving.engine),
        stored=question.describe_stored(),
        rows=make_table("llm", ServedRow, rows),
        loads=make_table("llm load", LoadRow, loads),
        pools=make_table("llm pool", PoolRow, pools),
        not_taken=tuple(dict.fromkeys(case.reason for case in lacking)),
        not_loaded=tuple(not_loaded),
        **{**found, "scope": widen(found["scope"], whole.selection)},
    )


def _serve_load(
    question: Question, whole: Plan, cases: Sequence[Case], stored: Stored
) -> tuple[list[PoolRow], list[LoadRow], list[str]]:
    """Return the requested pools, the results of the request load, and the reasons for missing rows."""
    if not question.serving.prefill_on:
        return [], *serve_load(question, cases, stored)
    names = [name_configured(entry.id, mode) for entry, mode in whole.selection.pairs]
    if len(names) > 2:
        raise UsageError(f"--prefill-on and --decode-on are {len(names)} hardware, expected one each")
    return *serve_pools(question, cases, (names[0], names[-1]), stored), []


def _know(served: Sequence[Case], found: Mapping[str, Any]) -> Stored:
    """Return the results of stored runs for each configuration, by `name_case`."""
    phases: dict[tuple[str, int, str], list[ServedPhase]] = {}
    for row in found["phases"]:
        phases.setdefault(name_case(served[row.place - 1]), []).append(row)
    assumed: Mapping[int, AssumedEnergy] = found["scope"].assumed
    known = {}
    for name, rows in phases.items():
        paid = (
            one.usd_per_million * one.tokens_per_s / 1e6
            for one in rows
            if one.phase == "decode" and one.usd_per_million is not None
        )
        known[name] = StoredCase(
            usd_per_s=next(paid, None),
            phases=tuple((row, assumed[row.run_id]) for row in rows if row.run_id in assumed),
        )
    return known


def serve_pass(source: Source, model: str, settings: Settings) -> LlmAnswer:
    """Return how the hardware of settings serves the model of a named pass, on its devices and up to its length.

    Raise as `llm` does, and UsageError if the name is no pass.
    """
    name, serving = find_served(model)
    return llm(source, name, attrs.evolve(settings, batch=SERVED.batch), serving=serving)


def find_served(model: str) -> tuple[str, Serving]:
    """Return the model of a named pass and the serving parameters that reproduce it; UsageError if it is no pass."""
    from joulemap.wing.llm.decoder.name import find_pass

    asked = find_pass(model)
    if asked is None:
        raise UsageError(f"{model} is no pass of a language model")
    step = asked.step
    return model.partition("(")[0], Serving(
        prompt=max(step.cached, step.tokens),
        engine=step.engine or SERVING.engine,
        devices=(step.devices,),
        expert_devices=step.expert_devices,
        data_devices=step.data_devices,
        pipeline_devices=step.pipeline_devices,
        cache=step.cache,
    )


def list_served(source: Source, model: str, settings: Settings, serving: Serving) -> tuple[Question, Plan, list[Case]]:
    """Return the question, its plan, and every configuration, including refused ones; raise as `llm` does."""
    from joulemap.catalog.stack import find_engine
    from joulemap.wing.llm.decoder.step import CACHES

    if serving.cache:
        check_name("precision of a cache", serving.cache, CACHES)
    decoder = read_decoder(source, model, settings, serving.prompt)
    guesser = find_guesser(source, decoder, settings, serving)
    question = Question(
        decoder=decoder,
        stack=find_engine(serving.engine),
        serving=serving,
        guesser=guesser,
        takes_published=not settings.precision and not settings.weight_precision,
    )
    question.check()
    if serving.prefill_on:
        if settings.hardware:
            raise UsageError("--prefill-on and --decode-on name the hardware: leave out other hardware")
        settings = attrs.evolve(settings, hardware=(serving.prefill_on, serving.decode_on))
    precisions, weights = list_precisions(decoder)
    settings = attrs.evolve(
        settings,
        precision=settings.precision or (precisions if question.takes_published else SIXTEEN_BITS[:1]),
        weight_precision=settings.weight_precision or (weights if question.takes_published else ()),
        runtime=cast("Runtime", question.stack.runtime),
        batch=tuple(sorted(settings.batch or SERVED.batch)),
        hardware=settings.hardware if is_choice(settings) else HARDWARE,
    )
    if (mixed := find_mixed(settings)) is not None:
        raise UsageError(f"{mixed.id} has unlike devices, between which `offload` divides layers: name it alone")
    settings, question.alike = open_boxes(settings)
    if question.alike and serving.devices:
        chip, count = next(iter(question.alike.items()))
        raise UsageError(f"--devices with a box, which has {count} of {chip}: name {chip} for another number")
    name = question.decode_key(1, 1)[0] if decoder.is_traced else decoder.name
    whole = plan_selected((name,), settings, select_hardware(settings))
    return question, whole, list_cases(question, whole, find_targets(source, whole))


def find_guesser(source: Source, decoder: Decoder, settings: Settings, serving: Serving) -> Decoder | None:
    """Return the draft model: a named one, or a layer like the last one; None for no draft.

    Raise UnknownNameError, and UsageError for a draft with another vocabulary.
    """
    if not serving.draft:
        return None
    if serving.draft == OWN_LAYER:
        return attrs.evolve(decoder, layers=decoder.layers[-1:])
    found = read_decoder(source, serving.draft, settings, serving.prompt)
    if abs(found.vocabulary / decoder.vocabulary - 1.0) > PADDED:
        raise UsageError(
            f"{found.name} has {found.vocabulary:,} tokens and {decoder.name} {decoder.vocabulary:,}: its guesses mean "
            "others"
        )
    return found


def _read(
    connection: Connection,
    question: Question,
    served: Sequence[Case],
    stored: Sequence[Case],
    costs: Mapping[Case, BatchCost],
    ids: tuple[list[int], list[int]],
    usage: Usage,
    prices: Sequence[Price],
    takes_all: bool,
) -> dict[str, Any]:
    """Return the results of stored runs for served configurations."""
    prefill, decode = ids
    used, pay = read_usage(usage)
    paid, _ = price_parameters(prices)
    every = list(dict.fromkeys([*prefill, *decode]))
    told = {
        "prefill_ids": prefill,
        "decode_ids": decode,
        "run_ids": every,
        "device_counts": [case.world for case in served],
        "batches": [case.batch for case in served],
        "prefill_passes": [
            -(-case.batch // question.pass_batch(case.batch)) if case is own and question.is_one_run else 0
            for case, own in zip(served, stored, strict=True)
        ],
        "engine": question.stack.release,
        "work": question.work,
        "prompt": question.serving.prompt,
        "steps": question.steps,
        "prefill_s": [costs[case].first_token_s for case in served],
        "decode_s": [costs[case].between_s * question.steps for case in served],
        "prefill_j": [costs[case].prompt_j for case in served],
        "decode_j": [costs[case].output_j for case in served],
    }
    return {
        "scope": find_stored_scope(connection, every),
        "phases": fetch(connection, ServedPhase, **told, **used, **paid, **pay),
        "winners": fetch(connection, ServedWinner, **told, **used, **paid, **pay, takes_all=takes_all),
        "assumptions": fetch(connection, AssumedNumber, **used),
    }
