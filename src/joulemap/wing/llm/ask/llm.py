"""Answer for a served language model: latency, energy and cost per token, memory fit, limits and the best hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from joulemap.ask import Checks, Facts, RunAnswer, Scope, drop_idle_hours, read_usage
from joulemap.ask.answer import fetch_tables
from joulemap.ask.candidate import HOURS, NO_FACTS, find_busy_hours
from joulemap.domain import SERVED, Settings, Table, make_table, name_configured
from joulemap.generated.cost import AssumedNumber
from joulemap.plan import Plan, Source, is_choice
from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.decoder import ANSWER, describe_engine, find_alias
from joulemap.wing.llm.ask import batch, load
from joulemap.wing.llm.ask.served import ServedRun, check_served
from joulemap.wing.llm.capacity.case import OK, UNSUPPORTED, Case, describe_cache, refuse
from joulemap.wing.llm.capacity.load import serve_load, serve_pools
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.capacity.question import Question, find_served
from joulemap.wing.llm.capacity.row import (
    PASS_TOO_LARGE,
    Stored,
    choose_stored,
    form_rows,
    opening_passes,
    read_stored,
    serve,
)
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.generated.row import LoadRow, PoolRow, ServedPhase, ServedRow, ServedWinner
from joulemap.wing.llm.serving.batch import BatchCost
from joulemap.wing.llm.setting import SERVING, Serving


@frozen(kw_only=True)
class LlmAnswer(RunAnswer):
    """Answer for one language model on several chips, each at several batch sizes, on one engine."""

    is_billed: ClassVar[bool] = True

    about = ("model", "engine", "serving", "pay", "not_taken", "not_loaded")

    rows: Table[ServedRow]
    """Rows in the requested order of hardware, the smallest batch first; includes refused configurations."""
    phases: Table[ServedPhase]
    """One row for prefill and one for decode of each configuration that is served."""
    winners: Table[ServedWinner]
    """Best configuration for each goal, such as the lowest energy."""
    model: str
    alias: str = ""
    """Model name as requested, if it is an alias of `model`; else empty."""
    serving: Serving
    engine: str
    """Name of the engine, with the year of its release."""
    stored: str
    """Published format of the checkpoint, as the title states it; empty for 16 bits."""
    loads: Table[LoadRow]
    """Results of each chip under the requested load; empty if only batches are requested."""
    pools: Table[PoolRow]
    """One row each for the prefill pool and the decode pool; empty without disaggregated serving."""
    assumptions: Table[AssumedNumber]
    """Assumed numbers that cost and carbon depend on."""
    facts: Facts
    """Decision, limits, rows and caveats, from which all sentences are made."""
    not_taken: tuple[str, ...] = ()
    """Reasons why hardware of the default selection cannot run the model."""
    wide_cache: str = ""
    """Note on 16-bit caches beside 4-bit floating-point weights; empty if there is none."""
    not_loaded: tuple[str, ...] = ()
    """Reasons why configurations have no result under the request load."""

    @property
    def served(self) -> tuple[ServedRow, ...]:
        """Rows of configurations that are served."""
        return tuple(row for row in self.rows if row.status == OK)

    @property
    def served_rows(self) -> Table[ServedRow]:
        """Table of configurations that are served."""
        return self.rows.with_rows(self.served)

    @property
    def judged_rows(self) -> Table[ServedRow]:
        """Table of configurations whose chip supports the precision."""
        return self.rows.with_rows(row for row in self.rows if row.status != UNSUPPORTED)

    @property
    def pay(self) -> str:
        """Payment for chips: rented, bought or both."""
        return self.phases[0].pay if self.phases.rows else ""

    def find_checks(self) -> Checks:
        """Return the commands that measure each configuration under the request load, or as a batch without one.

        Tools generate only independent random requests, so other loads are measured as batches.
        """
        serving = self.serving
        asked = serving.rate_per_s or 0.0, serving.in_flight or 0
        is_plain = not (serving.requests or serving.reuses_prefixes or serving.prefill_on)
        rows: Sequence[ServedRow | LoadRow] = self.loads.rows if any(asked) and is_plain else self.served
        runs = (
            ServedRun(row.label, row.hardware, row.precision, row.batch, row.device_count)
            if isinstance(row, ServedRow)
            else ServedRun(row.label, row.hardware, row.precision, 1, row.device_count, *asked)
            for row in rows
        )
        return check_served(self.model, serving, runs, self.scope.spell)


def llm(
    source: Source,
    model: str,
    settings: Settings = SERVED,
    *,
    serving: Serving = SERVING,
) -> LlmAnswer:
    """Return how each chip serves a language model: latency, energy and cost per token, memory fit, bottlenecks.

    `model` is a built-in name, a `config.json` or its folder, or a traced model with a KV cache. Each configuration has
    two runs: the prefill pass, and a decode step at the middle of the output. Both runs are of one device; energies in
    the answer cover all devices. A configuration that does not fit or lacks the precision is a row with the reason.

    Raise UnknownNameError for an unknown model, hardware or engine, UsageError for an invalid question, ModelError for
    a model that cannot be traced, UnsupportedError if nothing serves the model.
    """
    return _answer(source, model, settings, serving)


def list_rows(source: Source, model: str, settings: Settings, serving: Serving) -> tuple[ServedRow, ...]:
    """Return the rows of `llm` alone, without the facts, which take as long as the rows of a stored answer."""
    return _answer(source, model, settings, serving, has_facts=False).rows.rows


def _answer(
    source: Source,
    model: str,
    settings: Settings,
    serving: Serving,
    *,
    has_facts: bool = True,
) -> LlmAnswer:
    if serving.reuses_prefixes and not serving.has_load:
        raise UsageError("--prefix-hit and --turns need users or a load: add --users 50, --rate 4/s or --in-flight 32")
    if serving.has_load:
        settings = drop_idle_hours(settings)  # a simulated load already includes idle time
    question, whole, cases = ServedModel(name=model, settings=settings, serving=serving).list_cases(source)
    is_chosen = is_choice(settings) or bool(serving.prefill_on)
    lacking = [] if is_chosen else [case for case in cases if case.status == UNSUPPORTED]
    served = [case for case in cases if case.status == OK]
    if not served:
        raise refuse(cases)
    costs = serve(question, served)
    stored = choose_stored(served)
    with opening_passes(source, [(question, whole, stored)]) as (connection, ids):
        scope = question.find_scope(whole, connection, [*ids[0], *ids[1]])
        tables = read_tables(scope, question, served, stored, costs, ids, settings)
        if not any(row.phase == ANSWER.name for row in tables["phases"]):
            raise UnsupportedError("; ".join(dict.fromkeys(f"{case.label} {PASS_TOO_LARGE}" for case in served)))
        kept = [case for case in cases if case not in lacking]
        rows = form_rows(question, kept, costs, tables["phases"])
        pools, loads, not_loaded = _serve_load(question, whole, kept, read_stored(served, tables))
        facts = _find_facts(scope.part(ids[1]), question, served, rows, loads, pools, tables) if has_facts else NO_FACTS
        scope.read()
    return LlmAnswer(
        model=question.decoder.name,
        alias=find_alias(model, question.decoder.name),
        serving=question.serving,
        engine=describe_engine(question.serving.engine),
        stored=question.describe_stored(),
        wide_cache=describe_cache(served),
        facts=facts,
        rows=make_table("llm", ServedRow, rows),
        loads=make_table("llm load", LoadRow, loads),
        pools=make_table("llm pool", PoolRow, pools),
        not_taken=tuple(dict.fromkeys(case.reason for case in lacking)),
        not_loaded=tuple(not_loaded),
        **tables,
    )


def _find_facts(
    scope: Scope,
    question: Question,
    served: Sequence[Case],
    rows: Sequence[ServedRow],
    loads: Sequence[LoadRow],
    pools: Sequence[PoolRow],
    tables: Mapping[str, Any],
) -> Facts:
    """Return the facts of the requested load, or of the batches without one."""
    hosts = {case.hardware: SlowHost.of(case.server) for case in served}
    if loads:
        fit = [row for row in rows if row.status == OK]
        return load.find_facts(scope, question, loads, pools, fit, tables["phases"].rows, hosts=hosts)
    hours = find_busy_hours(tables["assumptions"])
    paid = hours if hours < HOURS else None
    return batch.find_facts(scope, question, rows, tables["phases"], tables["winners"], hosts=hosts, hours=paid)


def _serve_load(
    question: Question, whole: Plan, cases: Sequence[Case], stored: Stored
) -> tuple[list[PoolRow], list[LoadRow], list[str]]:
    """Return the rows of the requested pools and of the request load, and the reasons for missing rows."""
    if not question.serving.prefill_on:
        return [], *serve_load(question, cases, stored)
    names = [name_configured(entry.id, mode) for entry, mode in whole.selection.pairs]
    if len(names) > 2:
        raise UsageError(f"--prefill-on and --decode-on name {len(names)} chips, expected one each")
    return *serve_pools(question, cases, (names[0], names[-1]), stored), []


def serve_pass(source: Source, model: str, settings: Settings) -> LlmAnswer:
    """Return how the hardware of settings serves the model of a named pass, on the devices and up to the length of the
    pass.

    Raise as `llm` does, and UsageError if the name is not a pass.
    """
    name, serving = find_served(model)
    return llm(source, name, attrs.evolve(settings, batch=SERVED.batch), serving=serving)


def read_tables(
    scope: Scope,
    question: Question,
    served: Sequence[Case],
    stored: Sequence[Case],
    costs: Mapping[Case, BatchCost],
    ids: tuple[list[int], list[int]],
    settings: Settings,
    *,
    has_winners: bool = True,
) -> dict[str, Any]:
    """Return name -> table of the answer, read from the stored runs of a scope, and the scope."""
    prefill, decode = ids
    used, pay = read_usage(settings)
    asked = {
        "prefill_ids": prefill,
        "decode_ids": decode,
        "run_ids": list(scope.run_ids),
        "device_counts": [case.world for case in served],
        "batches": [case.batch for case in served],
        "prefill_passes": [
            question.count_prefills(case.batch, case.server.step_tokens)
            if case is own and question.is_one_run(case.devices)
            else 0
            for case, own in zip(served, stored, strict=True)
        ],
        "engine": question.stack.release,
        "prompt": question.serving.prompt,
        "steps": question.steps,
        "prefill_s": [costs[case].first_token_s for case in served],
        "decode_s": [costs[case].between_s * question.steps for case in served],
        "prefill_j": [costs[case].prompt_j for case in served],
        "decode_j": [costs[case].between_j * question.steps for case in served],
    }
    given: dict[str, Any] = {**asked, **used, **pay}
    but = ("rows", "loads", "pools") if has_winners else ("rows", "loads", "pools", "winners")
    if has_winners:
        slow = [SlowHost.of(case.server).find_half_width(costs[case].between_s) for case in served]
        given |= {"takes_all": settings.takes_all, "slow_half_widths": slow}
    return {"scope": scope, **fetch_tables(scope.connection, LlmAnswer, but, **given)}
