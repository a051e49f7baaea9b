"""Reading of measurement files and options into records; errors name a missing value and its option."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from joulemap.ask import UNKNOWN, Finding, Value
from joulemap.catalog import load_models
from joulemap.catalog.measurement import check_single
from joulemap.domain import (
    DEFAULT_MODE,
    HardwareRef,
    Measurement,
    check_name,
    find_entry,
    find_model_name,
    is_operator,
    name_configured,
)
from joulemap.physics import PRECISION_BYTES, RUNTIME, Hardware, name_precision, read_weight_format
from joulemap.physics.record.weight import GGUF
from joulemap.plan import known_hardware, read_known
from joulemap.system import (
    CatalogueError,
    JoulemapError,
    Reason,
    UnknownNameError,
    UnsupportedError,
    UsageError,
    find_nearest,
    frozen,
)
from joulemap.system.errors import AmbiguousNameError
from joulemap.wing.decoder import (
    find_by_size,
    find_decoder,
    find_engine,
    find_shipped,
    find_stack,
    list_decoders,
    stack_names,
)
from joulemap.wing.llm.serve import Room, ServingRow, check_measured, find_deployment
from joulemap.wing.verify.measured import (
    LEFT_OUT,
    Cells,
    Format,
    Stated,
    count_reasons,
    find_faults,
    list_runs,
    list_substitutes,
    open_content,
    pick,
    recognize,
)
from joulemap.wing.verify.reader import READERS, assume
from joulemap.wing.verify.show.word import join_conditions

TAKEN: Final[Mapping[str, tuple[str, Collection[str]]]] = {
    **dict.fromkeys(("engine", "host", "replicas", "prompt", "output"), ("served models", {"served"})),
    "runtime": ("single runs", {"single", "window"}),
    "passes": ("windows and traces", {"window"}),
}
"""Option -> noun for the runs that accept it, and the kinds of file formats that contain such runs."""

MOST_DOUBLED: Final = 6
"""Maximum doublings of the number of devices that is tried if a file does not state it: 64 devices."""

LACKING: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""Exceptions that show that a run does not match its file format."""

STORED: Final = re.compile(
    r"[-_.](fp8|nvfp4|mxfp4|awq|gptq|w8a8|w4a16|int8|int4|fp4|bf16|fp16|i?q\d\w*)(?=$|[-_.])", re.IGNORECASE
)
"""Pattern of the weight format at the end of a checkpoint's name or between its parts."""

WRITTEN: Final = {"w8a8": "int8", "w4a16": "int4", "w4a16_awq": "awq", "fp8_block_scales": "fp8_block", "auto": ""}
"""Weight precision as other tools name it -> name here; empty for the precision of the checkpoint."""

PARAMETER_STEP: Final = 1e-4
"""Relative tolerance of a parameter count in a file, because GGUF files count tables of angles too."""

SHARED: Final = ("output_tokens_per_s", "total_tokens_per_s", "power_w", "batch")
"""Columns of a served model that sum over all replicas."""


@frozen(kw_only=True)
class Reading:
    """Measured configuration in a file, with the values that were assumed or could not be used."""

    file: Path
    form: Format
    row: Measurement | ServingRow
    findings: tuple[Finding, ...]
    """Assumptions and conditions of the measurement, and other runs of the file that could not be read."""
    assumed: frozenset[str]
    """Columns stated neither in the file nor by the user."""
    other_hardware: str = ""
    """Chip of the catalogue that the file names, if the user states another; empty otherwise."""
    unscored: Mapping[str, Reason] = {}
    """Quantity without a usable number in the file -> reason."""


def check_options(readings: Sequence[Reading], stated: Stated) -> None:
    """Raise UsageError for an option that applies to none of these files."""
    for name, (what, kinds) in TAKEN.items():
        if stated[name] and not any(one.form.kind in kinds for one in readings):
            names = ", ".join(dict.fromkeys(one.form.name for one in readings))
            raise UsageError(f"--{name} applies to {what}; the file is from {names}")


def read_file(path: Path, stated: Stated) -> list[Reading]:
    """Return the readings of every configuration in a file; `stated` is option name -> the user's value.

    Raises CatalogueError for a file of unknown format or without its format's fields. Raises UsageError or
    UnknownNameError with the option's name for a value that is missing or unknown.
    """
    content = open_content(path)
    form = recognize(content)
    take, make = READERS[form.reader], _make_served if form.kind == "served" else _make_single
    left: list[str] = []
    readings: list[Reading] = []
    lost: list[Finding] = []
    for one in list_runs(content, form):
        faults: dict[str, Reason] = {}
        lost += [Finding(kind="left_out", values=one[LEFT_OUT])] if LEFT_OUT in one else []
        try:
            cells = pick(one, form.columns)
            faults = find_faults(one, form.columns, cells)
            substitutes = [
                Finding(kind="substitute", values={**fault.values, "other": other}, doubt=UNKNOWN)
                for fault, other in list_substitutes(one, form.columns, cells)
            ]
            cells = take({**form.fixed, **cells}, one, content, stated)
            cells["source"] = f"{form.name}: {path.name}"
            notes, assumed = [*cells.pop("notes", []), *substitutes], cells.pop("assumed", set())
            named = str(cells.get("hardware") or "")
            precision = "weight_precision" if form.kind == "served" else "precision"
            open_options = {str(one.values["option"]) for one in notes if one.kind == "unstated"}
            notes = [one for one in notes if one.kind != "unstated" or not stated[str(one.values["option"])]]
            overridden = _override(cells, stated, assumed, precision)
            notes += [one for one in overridden if one.values["option"] not in open_options]
            row = make(cells, notes, assumed, path, stated)
            readings.append(
                Reading(
                    file=path,
                    form=form,
                    row=row,
                    findings=tuple(notes),
                    assumed=frozenset(assumed),
                    other_hardware=_find_other(named, row.hardware),
                    unscored=_name_unscored(row, faults, form.kind),
                )
            )
        except LACKING as error:
            left.append("; ".join(fault.text for fault in faults.values()) or _explain(error, form))
    if not readings:
        what = left[0] if left else "it states no run"
        raise CatalogueError(f"{path}: read as {form.name}, but {what}; expected {form.expected}")
    if left:
        counts: dict[str, Value] = {
            "count": len(left),
            "total": len(readings) + len(left),
            "unit": "run",
            "name": path.name,
        }
        lost.insert(0, Finding(kind="left_out", values={**counts, "reasons": count_reasons(left)}))
    readings[0] = attrs.evolve(readings[0], findings=(*readings[0].findings, *lost))
    return readings


def _name_unscored(row: Measurement | ServingRow, faults: Mapping[str, Reason], kind: str) -> dict[str, Reason]:
    """Return quantity -> fault, for quantities that a row lacks because of a fault in the file."""
    is_served = kind == "served"
    is_prompt_alone = is_served and getattr(row, "output_tokens", None) == 1.0
    unscored: dict[str, Reason] = {}
    for column, fault in faults.items():
        is_energy = is_served and column == "energy_j"
        name = "energy_per_request_j" if is_energy else column.replace("_per_device_w", "_w").replace("_device_s", "_s")
        if getattr(row, name, None) is None and not (is_prompt_alone and name == "inter_token_latency_s"):
            unscored[name] = fault
    return unscored


def _explain(error: Exception, form: Format) -> str:
    """Return the error of a run as text, in terms of its file format."""
    if isinstance(error, KeyError):
        paths = " or ".join(form.columns.get(str(error.args[0]), ()))
        return f"no number for {error.args[0]!r}" + (f" ({paths})" if paths else "")
    return "its divisor is 0" if isinstance(error, ZeroDivisionError) else str(error)


def _override(cells: Cells, stated: Stated, assumed: set[str], precision: str) -> Iterator[Finding]:
    """Replace values of a file by those of the user; yield a finding for each difference."""
    for key in ("model", "hardware", "host", "precision", "batch", "engine", "runtime"):
        column = precision if key == "precision" else key
        own, read = stated[key], cells.get(column)
        if own:
            cells[column] = own
            assumed.discard(column)
            is_same = own == read or str(own).lower() == str(read).lower()
            is_same = is_same or (key in SAME and SAME[key](str(own), str(read)))
            if read and key != "runtime" and not is_same:
                doubt = abs(math.log(own / read)) if isinstance(read, int | float) else UNKNOWN
                values = {"option": key, "stated": own, "in_file": read}
                yield Finding(kind="overridden", values=values, doubt=doubt)


def _find_other(named: str, hardware: str) -> str:
    """Return the id of the chip that a file names; empty if it is unknown or the chip of the run."""
    try:
        chip = _name_hardware(named, Path())
    except JoulemapError:
        return ""
    return "" if HardwareRef.read(chip).label == HardwareRef.read(hardware).label else chip


def _is_same_chip(own: str, read: str) -> bool:
    """Return whether two names mean the same chip; False if the file's name is unknown."""
    try:
        return _name_hardware(own, Path()) == _name_hardware(read, Path())
    except JoulemapError:
        return False


def _is_same_model(own: str, read: str) -> bool:
    """Return whether two names mean the same language model; False if one is unknown."""
    return bool(_find_own(own)) and _find_own(own) == _find_own(read)


SAME: Final = {"hardware": _is_same_chip, "host": _is_same_chip, "model": _is_same_model}
"""Option -> function that compares two names."""


def _make_served(cells: Cells, notes: list[Finding], assumed: set[str], path: Path, stated: Stated) -> ServingRow:
    replicas = stated["replicas"] or cells.pop("replicas", 1)
    cells.pop("replicas", None)
    stored = STORED.search(cells.get("model", "").rpartition("/")[2])
    _find_like(cells, notes, is_stated=bool(stated["model"]))
    cells["model"] = _name_decoder(cells.get("model", ""), path, is_stated=bool(stated["model"]))
    cells["hardware"] = _name_hardware(cells.get("hardware", ""), path)
    cells |= (divided := _divide(cells, path))
    if away := ServingRow.doubt_split(divided.get("layer_split", "")):
        notes.append(Finding(kind="experts_away", values={"ratio": math.exp(away)}, doubt=away))
    cells["weight_precision"] = _name_weights(cells.get("weight_precision") or (stored[1] if stored else ""), path)
    decoder = find_decoder(cells["model"])
    published = decoder.published if decoder is not None else None
    if published is not None:
        cells["weight_precision"] = published.find_format(cells["weight_precision"])
    if not cells["weight_precision"]:
        assumed.add("weight_precision")
        cells["weight_precision"] = published.weights if published is not None else ""
        notes.append(assume("precision", cells["weight_precision"] or "bf16"))
    cells["cache_precision"] = _name_weights(cells.get("cache_precision", ""), path)
    cells |= _name_engine(cells["engine"], cells["date"])
    if stated["devices"]:
        assumed.discard("device_count")
        tensor, stages = find_stack(cells["engine"]).divide(stated["devices"] // replicas, 1)
        cells |= {"device_count": stated["devices"], "tensor_parallel": tensor}
        cells |= {"pipeline_parallel": stages} if stages > 1 else {}
    if replicas > 1:
        if cells["device_count"] % replicas:
            raise UsageError(
                f"{path}: {cells['device_count']} devices cannot be divided among {replicas} replicas: add --devices"
            )
        cells["device_count"] //= replicas
        cells["tensor_parallel"] = cells["device_count"] // (cells.get("pipeline_parallel") or 1)
        notes.append(Finding(kind="each", values={"part": "replica", "count": replicas, "batch": cells["batch"]}))
        cells |= {name: cells[name] / replicas for name in SHARED if name in cells}
    known = known_hardware([cells["hardware"]])
    row = check_measured({name: value for name, value in cells.items() if value != ""}, known)
    if "device_count" in assumed:
        digest = known[HardwareRef.read(row.hardware).label].digest
        row = _take_fewest(row, read_known([digest])[digest])
        notes[:] = [one for one in notes if one.values.get("option") != "devices"]
        notes.append(assume("devices", row.device_count or 1))
    return attrs.evolve(row, notes=join_conditions(notes))


def _take_fewest(row: ServingRow, hardware: Hardware) -> ServingRow:
    """Return a row on the fewest devices that hold one of its sequences or, if that takes several, its whole batch, as
    `llm` chooses them; the row itself if no number holds one.
    """
    fitting: list[ServingRow] = []
    for count in (2**power for power in range(MOST_DOUBLED + 1)):
        wider = attrs.evolve(row, device_count=count, tensor_parallel=count)
        try:
            room = Room(deployment=find_deployment(wider, hardware))
            most = room.sequences(row.prompt_tokens or 0.0, row.output_tokens or 0.0)
        except (UnsupportedError, UsageError):
            continue
        if most >= (row.batch if fitting else 1.0):
            fitting.append(wider)
            if count == 1 or len(fitting) > 1 or most >= row.batch:
                return wider
    return fitting[0] if fitting else row


def _find_like(cells: Cells, notes: list[Finding], *, is_stated: bool) -> None:
    """Name a model after a built-in one with as many parameters, if the name in the file is unknown.

    llama-bench derives names such as `llama 13B` from the number of layers.
    """
    given, count, step = (cells.pop(name, None) for name in ("type_name", "parameters", "parameter_step"))
    if is_stated or not given or _find_own(cells["model"]):
        return
    alike = find_by_size(given, count, step or PARAMETER_STEP * count)
    if alike and alike != find_shipped(given):
        notes.append(Finding(kind="like", values={"given": given, "model": alike}, doubt=UNKNOWN))
    cells["model"] = alike or cells["model"] or given.replace(" ", "-")


def _divide(cells: Cells, path: Path) -> dict[str, str]:
    """Return the columns of a model that is divided between unlike GPUs, or between GPUs and the processor; none for
    other models.

    Without stated shares, GPUs hold layers in proportion to their memory, as llama.cpp divides them. Raise ValueError
    for a division that is not predicted, UsageError if the processor is not stated.
    """
    layers, experts = (cells.pop(name, 0.0) for name in ("gpu_layers", "host_experts"))
    cards, shares, processor = (cells.pop(name, None) for name in ("cards", "shares", "host"))
    decoder = find_decoder(cells["model"])
    if not cards or decoder is None:
        return {}
    total = decoder.layer_count
    layers = total if layers < 0.0 else min(round(layers), total)
    away = min(experts, total) if decoder.is_routed else 0
    first = cards[0]
    chips = [cells["hardware"] if one == first else _name_hardware(one, path) for one in cards]
    if layers == total and not away and len(set(chips)) == 1:
        return {}
    if layers < total and away:
        raise ValueError("both layers and experts of other layers are in host memory: only one of them is predicted")
    if "tensor_parallel" in cells and len(chips) > 1:
        raise ValueError(
            "each layer is divided between the GPUs and the processor or unlike GPUs: only whole layers are"
        )
    known = {one: known_hardware([one])[HardwareRef.read(one).label] for one in chips}
    described = read_known([one.digest for one in known.values()])
    shares = shares or [described[known[one].digest].memory_capacity.value for one in chips]
    ends = [round(layers * sum(shares[: at + 1]) / sum(shares)) for at in range(len(shares))]
    counts = [end - start for start, end in zip((0, *ends), ends, strict=False)]
    if layers < total or away:
        if not processor:
            raise UsageError(f"{path} does not state the processor that holds a part of the model: add --host, e.g. "
                             "--host ryzen_9_5950x")  # fmt: skip
        host = _name_hardware(processor, path, "host")
        if known_hardware([host])[HardwareRef.read(host).label].architecture != "cpu":
            raise ValueError(f"a part of the model is on {host}, which is no processor")
        chips, counts = [*chips, host], [*counts, round(away) or total - layers]
    split = "/".join(map(str, counts))
    return {"other_hardware": "+".join(chips[1:]), "layer_split": ServingRow.split_experts(split) if away else split}


def _make_single(cells: Cells, notes: list[Finding], assumed: set[str], path: Path, stated: Stated) -> Measurement:
    devices = stated["devices"] or cells.pop("device_count", 1)
    cells.pop("device_count", None)
    cells["model"] = stated["model"] or _find_model(cells.get("model", ""), path)
    cells["hardware"] = _name_hardware(cells.get("hardware", ""), path)
    for name, example in (("precision", "fp16"), ("batch", "8")):
        if not cells.get(name):
            raise UsageError(f"{path} does not state the {name}: add --{name}, e.g. --{name} {example}")
    cells["precision"] = name_precision(cells["precision"])
    check_name("precision", cells["precision"], PRECISION_BYTES)
    known = known_hardware([cells["hardware"]])
    entry = known[HardwareRef.read(cells["hardware"]).label]
    if cells["precision"] == "tf32" and not stated["precision"] and "tf32" not in entry.precisions:
        cells["precision"] = "fp32"  # trtexec logs TF32 as allowed on chips without it
    if RUNTIME[cells["runtime"]].launches_each and not stated["runtime"]:
        assumed.add("runtime")
    if devices > 1 and "throughput_per_s" in cells:
        cells["throughput_per_s"] /= devices
        notes.append(Finding(kind="each", values={"part": "device", "count": devices, "batch": None}))
    if entry.architecture == "cpu":  # a prediction is for all cores
        notes[:] = [attrs.evolve(one, doubt=UNKNOWN) if one.kind == "threads" else one for one in notes]
    cells["conditions"] = join_conditions(notes)
    return check_single(cells, known, load_models())


def _name_hardware(given: str, path: Path, option: str = "hardware") -> str:
    """Return the id of the chip that a file or an option names, with its power mode.

    Raise UsageError or UnknownNameError if the name is missing, ambiguous or unknown.
    """
    if not given:
        raise UsageError(f"{path} does not state the hardware: add --hardware, e.g. --hardware h100_sxm5")
    ref = HardwareRef.read(given)
    plain = ref.label
    near: tuple[str, ...] = ()
    for name in (plain, re.sub(r"[-_ ]?(?<!\d)\d{1,4} ?GB\b", "", plain), re.sub(r"(?<=\d)-[a-z]++\d*$", "", plain)):
        try:
            entry = find_entry(known_hardware([name]), name)
        except AmbiguousNameError as error:
            raise UsageError(f"{path} matches several chips, add --{option}: {error}") from error
        except UnknownNameError as error:
            near = near or error.near
            continue
        return name_configured(entry.id, entry.find_mode(ref.mode or DEFAULT_MODE))
    hint = f"{path} names it: use --{option} with one of `joulemap hardware list`, or add a file to $JOULEMAP_HARDWARE"
    raise UnknownNameError("hardware", given, (), hint, near=near)


def _name_decoder(given: str, path: Path, *, is_stated: bool) -> str:
    """Return the language model of a name, without the part that states its weight format.

    Only the user may name a configuration by path: a path in a measurement file is never opened.
    """
    if not given:
        raise UsageError(f"{path} does not state the model: add --model, e.g. --model llama-3.1-8b")
    spellings = _list_spellings(given)
    asked = spellings if is_stated else filter(None, [_find_own(given)])
    decoder = next((one for one in map(find_decoder, asked) if one is not None), None)
    if decoder is None:
        names = list_decoders()
        near = find_nearest(spellings[-1], [(one,) for one in names])
        hint = "the file measures a language model, which --model must name" if is_stated else "name it with --model"
        raise UnknownNameError("language model", given, names, hint, near=near)
    return decoder.name


def _list_spellings(given: str) -> tuple[str, str, str]:
    """Return three spellings of a model name: as given, without folders, and also without its weight format."""
    kept = re.search(r"(?:^|/)models--(?:[\w.-]+?--)?([\w.-]+)", given)  # a folder of the Hugging Face cache
    own = kept[1] if kept else given.rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    return given, own, STORED.split(own, maxsplit=1)[0]


def _find_own(given: str) -> str:
    """Return the built-in language model that a file names; empty for an unknown one."""
    return next(filter(None, map(find_shipped, _list_spellings(given))), "")


def _name_weights(given: str, path: Path) -> str:
    lower = given.strip().lower().replace("-", "_")
    name = name_precision(WRITTEN.get(lower, lower))
    try:
        return read_weight_format(name).name if name and not name.startswith(GGUF) else name
    except UsageError as error:
        raise UsageError(f"{path}: {error}; name it with --precision") from error


def _name_engine(given: str, date: str) -> dict[str, str]:
    """Return the columns of an engine and its release date; a name such as `vllm@2024` states the date."""
    if "@" in given:
        engine = find_engine(given)
        return {"engine": engine.named, **({"date": engine.date} if re.search(r"@\d", given) else {})}
    try:
        bare = re.split(r"[-_ ](?:chat|native|oai|openai)\b", given.lower().removeprefix("dynamo-"))[0]
        return {"engine": find_stack(bare, date).named}
    except UnknownNameError as error:
        raise UnknownNameError("engine", given, stack_names(), "name it with --engine", near=error.near) from error


def _find_model(given: str, path: Path) -> str:
    """Return the longest name of a catalogue model in a text, or else in the path of the file."""
    models = list(_models_in(given)) or list(_models_in("/".join(path.absolute().parts[-4:])))
    if not models:
        fault = f"states {given[:60]!r}, which names no model" if given else "does not state the model"
        near = find_nearest(Path(given).stem, [(one,) for one in load_models()]) if given else []
        meant = f"; nearest: {', '.join(near)}" if near else ""
        raise UsageError(f"{path} {fault}: add --model, e.g. --model resnet50{meant}")
    return max(models, key=len)


def _models_in(given: str) -> Iterator[str]:
    known = load_models()
    for word in re.split(r"[^\w-]+", given):
        bare = re.split(r"[-_](?:v\d|int8|fp\d|bf16|b\d|bs\d|opset|onnx|sim)", word)[0]
        for name in (word, bare):
            model = find_model_name(name, known) if name and not is_operator(name) else ""
            if model in known:
                yield model
