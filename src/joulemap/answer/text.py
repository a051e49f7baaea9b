"""Text that answers about runs share: title, clauses after a headline, uncertainty, notes."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

# Title

TITLE: Final = Template("{models:list}, batch {batches:and}, {precisions:list}[, {runtimes:list}]")
RUNTIME: Final = Template("{precisions:and}, {runtimes:and}")
BOUNDED: Final = Template("{subject}, {boundaries:and}[, {hosts:list}][, {changes:list}]{rest}")
WITH_HOST: Final = Template("with host {host}")
CHANGED: Final = Template("{hardware:and} with {numbers:and}")
MORE_CHANGED: Final = Template("{count} more changed")
MORE_NUMBERS: Final = Template("{count} more numbers")
TF32: Final = {
    "engine": "TF32 products, TensorRT's default",
    "": "TF32 convolutions, PyTorch's default",
}
"""Runtime -> operators that run in TF32 in an fp32 run on an NVIDIA GPU; empty for frameworks."""
FP32: Final = Template("fp32 ({tf32})")
POWER: Final = Template("{power:W}{host}")
AND_HOST: Final = " + host"

# Clauses after a headline

UNLISTED: Final = Template("operator support of {hardware:and} is unknown[; no model was measured on {unmeasured:and}]")
UNHOSTED: Final = Template("the energy of {hardware:and} leaves out the host that it needs: {options} adds it")
HOST_OPTION: Final = Template("--host {host}")
FALLEN_SHARE: Final = Template("a host computes what the compiler of the chip does not run: of the time {shares:and}")
SHARE_ON: Final = Template("{share:%} on {hardware}")

# Uncertainty

SPREAD: Final = Template("4 in 5 measurements are within {spans:and} of the figure")
SPAN: Final = Template("{lowest:±}[ to {highest:±}] ({quantity})")
NEW: Final = Template("[for {hardware:and} ]estimated from other work of classes without measurements of this kind")
OWN: Final = Template("of which {parts}[ and those of {more} more]")
OWN_PART: Final = Template("{whose} of {hardware} contribute {widths:and}")
OWN_WIDTH: Final = Template("{width:±} ({quantity})")
ASSUMED: Final = "assumed numbers"
YOURS: Final = "your assumed numbers"

# Notes

LEFT_OUT: Final = Template("Left out: {reasons}")
REFUSED: Final = Template("{count} unsupported ({first})")
BEYOND_BUDGET: Final = Template("{count} without a mode within {budget:W} ({first}: {reason})")
UNSUPPORTED: Final = Template("unsupported: {reason}")

WEIGHTS: Final = Template(
    "weights of products are stored as {formats}; the kernel that multiplies by them converts them, and norms, biases "
    "and tables keep the precision of activations"
)
TF32_NOTE: Final = Template("fp32 runs of NVIDIA GPUs use {tf32}; `--tf32 never` turns this off")
PLACED: Final = Template("{hardware} runs it {placement}")
PLACED_ON: Final = Template("{form} on {devices}")
SET: Final = Template("set: {change}")
BUDGET: Final = Template("each hardware at its largest power mode within {budget}")
NO_MODE: Final = Template(
    "left out, no mode within {budget:W}: {names:list}[ and {more} more, which --format json has]"
)
REASON: Final = Template("{hardware} ({reason})")

NO_HOST: Final = Template("{host} is not counted: none of the hardware needs a host")
HOSTED: Final = Template("energy and power include the static power of {host} as the host of {hardware:and}")
HOSTLESS: Final = Template(
    "the energy of {hardware:and} leaves out the host: `--host {host}`, for example, adds it; `recommend` ranks with a "
    "host"
)
LAUNCHED: Final = Template("eager: {host} launches kernels of {hardware:and} in {seconds:s} each[; {how}]")
BESIDE: Final = "a core beside it"
OTHER_HOST: Final = "`--host` names another, `joulemap measure host` times this machine"
FALLEN: Final = Template(
    "{compiler} does not run {operations:and}: {helper} computes that beside {hardware:and}[, and {others}], for "
    "{latency} of the time and {energy} of the energy, copies included"
)
FALLEN_BESIDE: Final = {
    "first": Template("{count:n operator} behind the first of them"),
    "stretch": Template("{count:n operator} outside the offloaded segment"),
    "": Template("{count:n operator}"),
}
MORE: Final = Template("{count} more")

ENGINE_ON: Final = Template("{engine} on {hardware:and}")
ENGINES: Final = Template("engine stands for {engines}; `--runtime fused` is the framework's compiler")
COMPILERS: Final = Template(
    "fused stands for {own}, and elsewhere for the framework's compiler; deployments there use {deployed}: "
    "`--runtime engine`"
)

CALIBRATED: Final = Template(
    "{row.hardware} is calibrated by {row.calibration} ({row.place}), {fit}; `--calibration none` disables it"
)
INHERITED: Final = Template(
    "{row.inheritors:and} {verb} the calibration of {row.hardware} (same generation, {row.hardware_generation}): "
    "{row.calibration}[ ({place}), {fit}]; `--calibration own` disables this"
)
FIT: Final = Template(
    "fitted to {measurement_count:n measurement} of {family_count:n family|families}[, median error {errors:and}]"
)
ERROR: Final = Template("{error:%} of {quantity}")
WEIGHT: Final = Template(
    "the {measurement_count:n measurement} of {hardware} decide {weights:and}, its class the rest; the coefficients "
    "move by {farthest:%} at most ({most_moved}), and the measurements determine {determined_count} of {moved_count}"
)
WEIGHT_IN: Final = Template("{share:%} in {quantity}")
UNCALIBRATED: Final = Template(
    "calibrated: {calibrated:list}; not calibrated: {others:list}[ and {more} more]; part of the difference is due to "
    "calibration (`--calibration none` compares class defaults)"
)
OWN_NOTE: Final = Template("uncertainty: {line}")
RECALLED: Final = Template(
    "{fraction:%} of the energy of {hardware} rests on public numbers that are not checked at their source"
)
