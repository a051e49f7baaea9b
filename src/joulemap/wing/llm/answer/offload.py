"""Answer for a language model divided between a processor and a GPU: layers on each, and cost per token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Answer
from joulemap.answer.computed import find_unknown, make_table, take, told
from joulemap.domain.default import SERVED
from joulemap.domain.settings import Serving, Settings
from joulemap.domain.table import Table
from joulemap.model.fallback import choose_precision
from joulemap.plan.calibration import use_calibration
from joulemap.present.cell import show_count, show_quantity, show_share
from joulemap.present.document import Document, show_under
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.wing.llm.answer.answer import SERVING
from joulemap.wing.llm.answer.demand import SIXTEEN_BITS, Question
from joulemap.wing.place.device import bind_devices

if TYPE_CHECKING:
    from joulemap.catalog.stack import Stack
    from joulemap.domain.hardware import Hardware
    from joulemap.plan.source import Source
    from joulemap.wing.llm.decoder.config import Decoder
    from joulemap.wing.llm.serving.offload import Offload, Way
    from joulemap.wing.llm.serving.surface import Passes
    from joulemap.wing.place.box.hardware import BoxHardware

ENGINE: Final = "llamacpp"
"""Engine that divides layers between a device and its host."""

NOTES: Final = (
    "layers on the device are the engine's -ngl; weights, cache and time of a layer are taken to be alike for all",
    "prompts of 32 tokens and more have the host's layers worked out by the device, their weights sent each time, "
    "where that is quicker",
)


@frozen(kw_only=True)
class OffloadRow:
    """Number of layers on the device, at one batch size."""

    batch: int = told("sequences at once")
    layers: int = told("on the device")
    is_best: bool = told("whether tokens come quickest, of what fits")
    first_token_s: float | None = told("from the start to the first token; none where it does not fit", "s")
    between_s: float | None = told("from a token of a sequence to its next", "s")
    tokens_per_s: float | None = told("of all sequences, while they answer", "1/s")
    output_token_j: float | None = told("of both, for a token of the answer", "J")
    device_fraction: float | None = told("of the time of a step, on the device", "1")
    host_fraction: float | None = told("of the time of a step, on the host", "1")
    copy_fraction: float | None = told("of the time of a step, between them", "1")
    device_bytes: float = told("that the device holds: weights, cache and activations", "B")
    host_bytes: float = told("that the host holds", "B")
    refusal: str = told("what does not fit; empty where all does")


@frozen(kw_only=True)
class OffloadAnswer(Answer):
    """Answer for a language model divided between a device and its host."""

    model: str
    box: str
    device: str
    host: str
    layer_count: int
    precision: str
    engine: str
    prompt: int
    output: int
    rows: Table[OffloadRow]

    about = ("model", "box", "device", "host", "layer_count", "precision", "engine", "prompt", "output")

    def document(self, *, limit: int = 18, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows."""
        del repeated
        table = self._lay(
            self.rows,
            f"*batch | *layers on {self.device} layers | first token first_token_s | *between between_s | "
            f"*tokens/s tokens_per_s | *J/token output_token_j | on it device_fraction | on the host host_fraction | "
            f"copies copy_fraction | it holds device_bytes | host holds host_bytes | *refused refusal",
            limit=limit,
            noun="divisions",
        )
        widths = zip(("--precision", "--weight-precision"), self.precision.split("/"), strict=False)
        return Document(
            title=f"{self.model} on {self.box}: prompt {self.prompt:,}, output {self.output:,}, {self.precision}, "
            f"{self.engine}",
            answer=self._tell(),
            sections=(show_under(f"Layers on {self.device}, the rest on {self.host}", table),),
            notes=NOTES,
            steps=(
                f"joulemap place '{self.model}(cached={self.prompt})' {self.box} "
                f"{' '.join(word for pair in widths for word in pair)}",
            ),
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _tell(self) -> str:
        """Return the best division at the first batch, and its gain over all layers on the host."""
        best = next(row for row in self.rows if row.is_best)
        host = next((row for row in self.rows if row.batch == best.batch and not row.layers and not row.refusal), None)
        rate, each = show_quantity(best.tokens_per_s, "1/s"), show_quantity(best.output_token_j, "J")
        shares = show_share(best.device_fraction), show_share(best.host_fraction)
        where = f"{shares[0]} of the time is the device's, {shares[1]} the host's"
        layers = f"{best.layers} of {show_count(self.layer_count, 'layer')} on {self.device}"
        said = f"{layers}: {rate} tokens at batch {best.batch}, {each} each; {where}"
        if host is None or not host.tokens_per_s or not best.tokens_per_s or host is best:
            return f"{said}."
        return f"{said}; {best.tokens_per_s / host.tokens_per_s:.3g}x what {self.host} alone does."


def offload(source: Source, model: str, settings: Settings = SERVED, *, serving: Serving = SERVING) -> OffloadAnswer:
    """Return the best numbers of layers on the GPU of a box, the rest on its processor, at each batch.

    Raise UsageError for any other box and for server options, UnsupportedError if no division fits; otherwise raise as
    `llm` does.
    """
    from joulemap.catalog.stack import find_engine
    from joulemap.wing.llm.source import find_mixed, read_decoder

    box = find_mixed(settings)
    if box is None:
        raise UsageError(
            "name a box of a GPU and a CPU, e.g. workstation_rtx_4090; see `joulemap hardware list --boxes`"
        )
    kept = attrs.evolve(
        SERVING, prompt=serving.prompt, output=serving.output, cache=serving.cache, engine=serving.engine
    )
    stack = find_engine(ENGINE if serving.engine == SERVING.engine else serving.engine)
    if serving != kept or not stack.id.startswith(ENGINE):
        can = f"{ENGINE} divides layers between them, by --prompt, --output, --batch and --cache"
        raise UsageError(f"{box.id} has unlike devices: {can}")
    decoder = read_decoder(source, model, settings, serving.prompt)
    Question(decoder=decoder, stack=stack, serving=serving).check()
    return _offload(box, decoder, stack, settings, serving)


def _offload(box: BoxHardware, decoder: Decoder, stack: Stack, settings: Settings, serving: Serving) -> OffloadAnswer:
    """Return the divisions between a box's GPU with the fastest memory and its processor; raise as `offload`."""
    from joulemap.catalog.stack import describe_engine

    bound = bind_devices(box, use_calibration(settings.calibration), "default", settings.boundary).apply(box)
    chips = [(device.name, chip) for (_, device), chip in zip(bound.box, bound.devices, strict=True)]
    hosts = [one for one in chips if one[1].architecture == "cpu"]
    others = [one for one in chips if one[1].architecture == "gpu"]
    if not hosts or not others:
        have = ", ".join(dict.fromkeys(one.id for one in box.devices))
        raise UsageError(f"{box.id} has {have}: layers are divided between a GPU and a CPU")
    host, device = hosts[0], max(others, key=lambda one: one[1].memory_bandwidth.value)
    whole = _deploy(decoder, stack, settings, serving, device[1], host[1], _find_way(bound, device[0], host[0]))
    rows: list[OffloadRow] = []
    for batch in settings.batch or SERVED.batch:
        rows += _divide(whole, serving, batch)
    if not any(row.is_best for row in rows):
        raise UnsupportedError(f"{decoder.name} fits {box.id} at no division: {rows[-1].refusal}")
    return OffloadAnswer(
        model=decoder.name,
        box=box.id,
        device=device[1].id,
        host=host[1].id,
        layer_count=decoder.layer_count,
        precision="/".join(
            dict.fromkeys((whole.device.precision, whole.device.weight_precision or whole.device.precision))
        ),
        engine=describe_engine(ENGINE if serving.engine == SERVING.engine else serving.engine),
        prompt=serving.prompt,
        output=serving.output,
        rows=make_table("llm offload", OffloadRow, rows),
    )


def _find_way(box: BoxHardware, device: str, host: str) -> Way:
    """Return the link between device and host; UsageError if there is none."""
    from joulemap.domain.configuration import Configuration
    from joulemap.domain.reference import FJ_PER_J
    from joulemap.wing.llm.serving.offload import Way
    from joulemap.wing.place.box.member import find_ways

    precision = next(iter(box.peaks))
    members = box.list_members(Configuration(hardware=box.id, precision=precision, runtime="engine", batch=1))
    names = [one.device.name for one in members]
    hops = find_ways(box.box, members).hops.get((names.index(device), names.index(host)))
    if hops is None:
        raise UsageError(f"{box.id}: no link joins {device} to {host}")
    memories = {one.memory for one in members if one.device.name in (device, host)}
    shared = next((one.capacity.value for one in box.box.memories if memories == {one.name}), 0.0)
    return Way(
        latency_s=sum(hop.latency_s for hop in hops),
        s_per_byte=sum(hop.s_per_byte for hop in hops),
        j_per_byte=sum(hop.fj_per_byte for hop in hops) / FJ_PER_J,
        shared_bytes=shared,
    )


def _deploy(
    decoder: Decoder,
    stack: Stack,
    settings: Settings,
    serving: Serving,
    device: Hardware,
    host: Hardware,
    way: Way,
) -> Offload:
    from joulemap.wing.llm.serving.deployment import Book, Deployment
    from joulemap.wing.llm.serving.offload import Offload

    if not settings.precision:
        stored = (decoder.published.weights,) if decoder.published and decoder.published.weights else ()
        settings = attrs.evolve(
            settings, precision=SIXTEEN_BITS[0], weight_precision=settings.weight_precision or stored
        )
    (asked, weights), *others = settings.precisions
    if others:
        raise UsageError("name one precision to divide layers at")
    book = Book(decoder)

    def deploy(chip: Hardware) -> Deployment:
        precision, stored = choose_precision(chip, asked, "" if weights == asked else weights)
        return Deployment(
            book=book, hardware=chip, stack=stack, precision=precision, weight_precision=stored, cache=serving.cache
        )

    return Offload.of(deploy(device), deploy(host), way)


def _divide(whole: Offload, serving: Serving, batch: int) -> list[OffloadRow]:
    """Return divisions of a batch: none and all of the layers, quarters, and the fewest and the most that fit.

    Apart from copies, the step time is linear in the layers, so the fastest is one of these.
    """
    from joulemap.wing.llm.serving.surface import Passes

    count, context = whole.device.decoder.layer_count, serving.prompt + serving.output
    every = {layers: attrs.evolve(whole, layers=layers) for layers in range(count + 1)}
    fitting = [layers for layers, one in every.items() if one.lacks(batch, context)[0] <= 0.0]
    step = Passes.of([float(batch)], context=float(serving.prompt + serving.output // 2))
    shown = {0, count // 4, count // 2, 3 * count // 4, count, *fitting[:1], *fitting[-1:]}
    between = {layers: float(every[layers].price(step).seconds[0]) for layers in shown if layers in fitting}
    best = min(between, key=lambda layers: between[layers], default=None)
    rows = []
    for layers in sorted(shown):
        one = every[layers]
        device_bytes, host_bytes = one.needed(batch, context)
        lacking, where = one.lacks(batch, context)
        found: dict[str, Any] = {
            **find_unknown(OffloadRow),
            "refusal": f"the {where} lacks {show_quantity(lacking, 'B')}",
        }
        if layers in fitting:
            found |= {"refusal": "", **_measure(one, serving, batch, step)}
        rows.append(
            OffloadRow(
                batch=batch,
                layers=layers,
                is_best=layers == best,
                device_bytes=device_bytes,
                host_bytes=host_bytes,
                **found,
            )
        )
    return rows


def _measure(one: Offload, serving: Serving, batch: int, step: Passes) -> dict[str, float]:
    """Return the latency and energy of a division that fits."""
    from joulemap.wing.llm.serving.batch import Batch, run_batches

    asked = Batch(
        sequences=batch,
        prompt_tokens=serving.prompt,
        output_tokens=serving.output,
        step_tokens=one.device.stack.step_tokens,
    )
    (cost,) = run_batches(one, (asked,))
    taken = one.divide(step)
    parts = {"device": taken.device_s[0], "host": taken.host_s[0], "copy": taken.copy_s[0]}
    total = float(sum(parts.values()))
    return {
        **take(OffloadRow, cost),
        "tokens_per_s": batch / cost.between_s,
        "output_token_j": cost.output_j / batch / max(serving.output - 1, 1),
        **{f"{name}_fraction": float(part) / total for name, part in parts.items()},
    }
