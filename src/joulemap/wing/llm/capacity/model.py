"""Language model that is asked for: its question, its configurations, and the precisions in which it is tried.

name, settings, serving ─► decoder ─► defaults of its checkpoint and engine ─► question and plan ─► configurations
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self, cast

import attrs

from joulemap.domain import SERVED, HardwareEntry, Settings, check_name
from joulemap.physics import GGUF_METHOD, Hardware, Precision, RuntimeName, read_weight_format
from joulemap.plan import Plan, Source, find_targets, is_choice, plan_selected, select_hardware
from joulemap.system import UsageError, frozen
from joulemap.wing.decoder import (
    CACHES,
    FP4,
    LOCAL_ENGINE,
    NARROW,
    SIXTEEN_BITS,
    WIDE,
    Decoder,
    find_engine,
    read_decoder,
)
from joulemap.wing.llm.capacity.case import Case, list_cases
from joulemap.wing.llm.capacity.question import (
    ACTIVATIONS,
    HARDWARE,
    Question,
    check_methods,
)
from joulemap.wing.llm.setting import SERVING, Serving
from joulemap.wing.place import find_mixed, open_boxes

OWN_LAYER: Final = "layer"
"""Value of `--draft` for one more layer like the model's last, as in multi-token prediction (MTP) and EAGLE."""

PADDED: Final = 0.01
"""Maximum relative difference between the vocabulary sizes of models with one tokenizer; padding rows cause it."""

LOCAL_VENDOR: Final = "Apple"
"""Vendor whose GPUs run `LOCAL_ENGINE`. Source: vLLM documentation, Installation, CPU (Apple silicon, recalled)."""

LOCAL_WEIGHTS: Final = "q4_k_m"
"""Default weight format of Ollama, and the most common one of llama.cpp's files."""

NPU_ENGINES: Final[Mapping[str, tuple[tuple[Precision, ...], tuple[str, ...]]]] = {
    "genie": ((), ("int4",)),
    "rkllm": (("int8",), ()),
    "openvino_genai": (("fp16",), ("int4:row",)),
    "fastflowlm": (("bf16",), ("q4_1",)),
    "ax_llm": (("fp16",), ("int8:row",)),
    "hailort_genai": (("int8",), ("int4:row",)),
}
"""Engine of one vendor's NPUs outside data centers, for which others have no kernels -> (activation precisions, weight
precisions) of the models that are published for it.

Sources: Qualcomm AI Hub (w4a16); airockchip/rknn-llm, benchmark.md (w8a8 on every chip); OpenVINO documentation, NPU
with OpenVINO GenAI (symmetric int4, a scale per channel); FastFlowLM/FLM_Q4NX_Converter (four bits, a scale and a
minimum per 32 weights); AXERA-TECH/ax-llm (w8a16); hailo-ai/hailo_model_zoo_genai (a8w4).
"""

PRECISIONS: Final[tuple[tuple[tuple[Precision, ...], tuple[str, ...]], ...]] = ((("fp8",), ()), ((), ("int4",)))
"""(activation precisions, weight precisions) to try in addition to the published ones; an empty tuple keeps the
default.
"""

LOCAL_PRECISIONS: Final[tuple[tuple[tuple[Precision, ...], tuple[str, ...]], ...]] = (
    ((), ("q8_0",)),
    ((), (LOCAL_WEIGHTS,)),
)
"""(activation precisions, weight precisions) to try as well on an engine that runs GGUF files only."""

Served = tuple[Question, "Plan", list[Case]]
"""(question, plan, configurations of all chips, refused ones included)."""


@frozen(kw_only=True, eq=False)
class ServedModel:
    """Language model that is asked for, with the settings of hardware and precisions, and its requests."""

    name: str
    settings: Settings
    serving: Serving = SERVING

    def list_choices(self, source: Source) -> list[Served]:
        """Return the question, plan and configurations in each precision to try, the published one first."""
        first = self.list_cases(source)
        choices = [first]
        if self.settings.precision or self.settings.weight_precision:
            return choices
        targets = {case.run.target.digest: case.target for case in first[2]}
        has_files = first[0].stack.methods == (GGUF_METHOD,)
        tried = ((), first[1].settings.weight_precision)
        for precision, weights in LOCAL_PRECISIONS if has_files else PRECISIONS:
            if (precision, weights) != tried and _is_narrower(first[0].decoder, weights):
                narrow = attrs.evolve(self.settings, precision=precision, weight_precision=weights)
                choices.append(attrs.evolve(self, settings=narrow).list_cases(source, targets))
                choices[-1][0].workloads = first[0].workloads
        return choices

    def list_cases(self, source: Source, known: dict[str, Hardware] | None = None) -> Served:
        """Return the question, its plan, and every configuration, also refused configurations; raise as `llm` does.

        `known` has the calibrated hardware of earlier calls, by digest; what it lacks is added.
        """
        question, whole = self.plan(source)
        known = {} if known is None else known
        if any(run.target.digest not in known for run in whole.runs("")):
            known |= find_targets(source, whole)
        return question, whole, list_cases(question, whole, known)

    def plan(self, source: Source) -> tuple[Question, Plan]:
        """Return the question and the plan of its configurations; raise as `llm` does."""
        if self.serving.cache:
            check_name("precision of a cache", self.serving.cache, CACHES)
        decoder = read_decoder(source, self.name, self.settings, self.serving.prompt)
        known = attrs.evolve(self, settings=_name_published(decoder, self.settings)).choose_engine(decoder)
        settings, serving = known.settings, known.serving
        is_published = not settings.precision and not settings.weight_precision
        published = decoder.published
        if published is not None and (is_published or settings.weight_precision == (published.weights,)):
            serving = attrs.evolve(serving, cache=serving.cache or published.cache)
        stack = attrs.evolve(find_engine(serving.engine), groups=serving.data_devices * serving.micro_batches)
        if stack.methods == (GGUF_METHOD,) and published is not None and (stored := decoder.file_weights):
            asked = tuple(stored if one == published.weights else one for one in settings.weight_precision)
            settings = attrs.evolve(settings, weight_precision=(stored,) if is_published else asked)
        question = Question(
            decoder=decoder,
            stack=stack,
            serving=serving,
            asked=self.settings,
            guesser=find_guesser(source, decoder, settings, serving),
            takes_published=not settings.precision and not settings.weight_precision,
            is_published=not settings.precision and settings.weight_precision in ((), (decoder.file_weights,)),
            chooses_precision=not settings.precision,
        )
        question.check()
        return _plan(question, settings)

    def choose_engine(self, decoder: Decoder) -> Self:
        """Return the model with the default engine and weights, where none are given.

        GGUF files run on llama.cpp, and so do models in a format of such files alone. So do other models, with
        `LOCAL_WEIGHTS`, if one chip is a CPU outside data centers or a GPU of a laptop or of Apple, which other engines
        do not serve. NPUs outside data centers run the engine of their vendor, if no other chips are asked for. An
        engine that is given and is the default one has its weights, too.
        """
        settings, serving = self.settings, self.serving
        if serving.prefill_on:
            return self
        if decoder.published is not None and decoder.published.method == GGUF_METHOD:
            return attrs.evolve(self, serving=attrs.evolve(serving, engine=serving.engine or LOCAL_ENGINE))
        engine = ""
        if is_choice(settings) and find_mixed(settings) is None:
            entries = [entry for entry, _ in select_hardware(settings).pairs]
            others = [entry for entry in entries if not _is_edge_npu(entry)]
            engine = LOCAL_ENGINE if any(map(_is_local, others)) else _find_npu_engine(entries)
        if serving.engine and find_engine(serving.engine).name != engine:
            return self
        if not engine:
            methods = {read_weight_format(one).method for one in settings.weight_precision}
            engine = LOCAL_ENGINE if methods == {GGUF_METHOD} else ""
        elif not settings.precision:
            local = (), (decoder.file_weights or LOCAL_WEIGHTS,)
            precision, weights = NPU_ENGINES.get(engine, local)
            if settings.weight_precision in ((), weights or precision):
                settings = attrs.evolve(settings, precision=precision, weight_precision=weights)
        return attrs.evolve(self, settings=settings, serving=attrs.evolve(serving, engine=serving.engine or engine))


def _is_local(entry: HardwareEntry) -> bool:
    """Return whether a chip is a CPU outside data centers, a GPU of a laptop or one of `LOCAL_VENDOR`."""
    if entry.architecture == "gpu":
        return entry.vendor == LOCAL_VENDOR or entry.form == "laptop"
    return entry.architecture == "cpu" and "datacenter" not in entry.deployment


def _is_edge_npu(entry: HardwareEntry) -> bool:
    return entry.architecture == "npu" and "datacenter" not in entry.deployment


def _find_npu_engine(entries: Sequence[HardwareEntry]) -> str:
    """Return the engine of the vendor of chips, if all are NPUs outside data centers and it has one; else empty."""
    if not all(map(_is_edge_npu, entries)):
        return ""
    vendors, chips = {entry.vendor for entry in entries}, {entry.id for entry in entries}
    able = (name for name in NPU_ENGINES if vendors <= {*find_engine(name).vendors})
    return next((name for name in able if chips <= {*(find_engine(name).chips or chips)}), "")


def _name_published(decoder: Decoder, settings: Settings) -> Settings:
    """Return settings that name the formats of the model's checkpoint as those that name none.

    A name may state only the kind of a format, as fp4 for MXFP4. A precision alone is that of the weights, and those of
    16 bits are the precision.
    """
    named, precision = settings.weight_precision, settings.precision
    published, wide = decoder.published, tuple(one for one in ACTIVATIONS if one in named)
    if wide and len(wide) == len(named) and not precision:
        return attrs.evolve(settings, precision=wide, weight_precision=())
    if published is None or not published.weights:
        return settings
    named = tuple(map(published.find_format, named))
    if not named and {published.find_format(one) for one in precision} == {published.weights}:
        named, precision = (published.weights,), precision if published.precision else ()
    if named == (published.weights,) and not precision:
        named = ()
    return attrs.evolve(settings, precision=precision, weight_precision=named)


def _plan(question: Question, settings: Settings) -> tuple[Question, Plan]:
    """Return a question with the devices of its boxes, and the plan of its configurations."""
    decoder, serving = question.decoder, question.serving
    if serving.prefill_on:
        if settings.hardware:
            raise UsageError("--prefill-on and --decode-on name the hardware: leave out other hardware")
        settings = attrs.evolve(settings, hardware=(serving.prefill_on, serving.decode_on))
    precisions, weights = decoder.list_precisions()
    if question.named_fp4 or (question.takes_published and weights and read_weight_format(weights[0]).precision == FP4):
        precisions = tuple(dict.fromkeys((*precisions, *NARROW)))  # the engine chooses
    settings = attrs.evolve(
        settings,
        precision=settings.precision
        or (precisions if question.takes_published or question.named_fp4 else SIXTEEN_BITS),
        weight_precision=settings.weight_precision or (weights if question.takes_published else ()),
        runtime=cast("RuntimeName", question.stack.runtime),
        batch=tuple(sorted(settings.batch or SERVED.batch)),
        hardware=settings.hardware if is_choice(settings) else HARDWARE,
    )
    check_methods(question, settings.weight_precision)
    if (mixed := find_mixed(settings)) is not None:
        raise UsageError(f"{mixed.id} has different devices, between which `offload` divides layers: name it alone")
    settings, question.alike = open_boxes(settings)
    if question.alike and serving.devices:
        chip, count = next(iter(question.alike.items()))
        raise UsageError(f"--devices does not apply to a box, which has {count} of {chip}: name {chip} instead")
    name = question.decode_key(1, 1)[0] if decoder.is_traced else decoder.name
    selection = select_hardware(settings)
    if question.chooses_precision and not all({*SIXTEEN_BITS} & {*entry.precisions} for entry, _ in selection.pairs):
        settings = attrs.evolve(settings, precision=(*settings.precision, WIDE))
    return question, plan_selected((name,), settings, selection)


def _is_narrower(decoder: Decoder, weights: Sequence[str]) -> bool:
    """Return whether a precision has fewer bits than the checkpoint as published."""
    published = decoder.published
    if published is None or not published.weights:
        return True
    return bool(weights) and "8" in published.weights


def find_guesser(source: Source, decoder: Decoder, settings: Settings, serving: Serving) -> Decoder | None:
    """Return the draft model: a named one, or a layer like the model's last; None without a draft.

    Raise UnknownNameError for an unknown name, UsageError for a draft with another vocabulary.
    """
    if not serving.draft:
        return None
    if serving.draft == OWN_LAYER:
        return attrs.evolve(decoder, layers=decoder.layers[-1:])
    draft = read_decoder(source, serving.draft, settings, serving.prompt)
    if abs(draft.vocabulary / decoder.vocabulary - 1.0) > PADDED:
        raise UsageError(
            f"the vocabulary of {draft.name} has {draft.vocabulary:,} tokens, that of {decoder.name} "
            f"{decoder.vocabulary:,}: choose a draft model with the same tokenizer"
        )
    return draft
