"""Text that all answers about runs share: title, clauses after a headline, uncertainty and notes."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

# Title

TITLE: Final = Template("{models:list}, batch {batches:and}, {precisions:list}[, {runtimes:list}]")
RUNTIME: Final = Template("{precisions:and}, {runtimes:and}")
BOUNDED: Final = Template("{subject}, {boundaries:and}[, {hosts:list}][, {changes:list}]{rest}")
WALL_ELSE_BOARD: Final = "energy at the wall where known, else at the board"
DEVICE_ONLY: Final = "device only"
WITH_HOST: Final = Template("with host {host}")
CHANGED: Final = Template("{hardware:and} with {numbers:and}")
MORE_CHANGED: Final = Template("{count} more changed")
MORE_NUMBERS: Final = Template("{count} more numbers")
CONVOLUTIONS: Final = Template("{precision} convolutions")
GEMMS: Final = Template("{precision} GEMMs")
PASSES: Final = {"default": "one bf16 pass", "high": "three bf16 passes", "highest": "six bf16 passes"}
"""Matmul precision -> text on the passes of an fp32 product through a systolic array."""
TRUE_FP32: Final = "fp32"
DEFAULT_OF: Final = Template("{products}, {library}'s default")
LIBRARIES: Final = {"TPU": "XLA", "AWS": "Neuron", "NVIDIA": "PyTorch"}
"""Makers of chips, as a title names them -> library whose default a framework's fp32 is."""
ON: Final = Template("{products} on {makers:and}")
GENERATIONS: Final = (Template("{maker} since Ampere"), Template("{maker} before Ampere"))
"""Chips of a maker with TF32, and those without it, where an answer has both."""
OF_SETTING: Final = Template("{setting}[, {products}]")
FP32: Final = Template("fp32 ({products})")
POWER: Final = Template("{power:W}{host}")
AND_HOST: Final = " + host"

# Clauses after a headline

UNLISTED: Final = Template(
    "it is unknown whether {hardware:and} can run every operator[; no model was measured on {unmeasured:or}]"
)
UNHOSTED: Final = Template("the energy of {hardware:and} excludes the required host: {options} adds it")
HOST_OPTION: Final = Template("--host {host}")
AT_WALL: Final = "--boundary system"
FALLEN_SHARE: Final = Template("the host computes operators that the chip does not support: {shares:few}")
SHARE_ON: Final = Template("{share:%} of the time on {hardware}")

# Uncertainty

BRACKETS: Final = "four of five measurements should fall inside the brackets (80 % intervals)"
SPREAD: Final = Template("80 % intervals relative to the prediction: {spans:list}")
SPAN: Final = Template("{quantity} {ends}")
FROM_TO: Final = Template("from {least}[ ({narrowest})] to {most}[ ({widest})]")
BOTH_SPANS: Final = Template("{least} ({narrowest}) and {most} ({widest})")
NEW: Final = Template(
    "[the intervals of {hardware:few}][{all}] are estimated from other kinds of work, because no {work} was measured "
    "on that class of chip[; {served}]"
)
ALL_NEW: Final = "the intervals"
ANY_WORK, DECODE_STEP = "work of this kind", "single decode step"
SERVED: Final = "`joulemap llm` predicts serving and has measurements of it"
OWN: Final = Template("{parts:and}[; and {more:n more chip}]")
OWN_OF: Final = Template("80 % intervals from {whose} alone, relative to the prediction: {parts:list}")
OWN_PART: Final = Template("{widths:and} on {hardware}")
OWN_WIDTH: Final = Template("{quantity} {width:±}")
ASSUMED: Final = "assumed numbers"
YOURS: Final = "your assumed numbers"

# Notes

LEFT_OUT: Final = Template("Left out: {reasons}")
REFUSED: Final = Template("{count:n unsupported configuration}[ of {chips:n chip}] ({example}{reasons})")
EXAMPLE: Final = "for example, "
MOST_REASONS: Final = 2
"""Maximum distinct reasons of refusals to list; if there are more, only one is given as an example."""
BEYOND_BUDGET: Final = Template("{count:n chip} without a power mode within {budget} ({example}{first}: {reason})")
REFUSED_COUNT: Final = Template("{count:n unsupported configuration}")
BEYOND_COUNT: Final = Template("{count:n chip} above {budget}")
UNSUPPORTED: Final = Template("unsupported: {reason}")
MORE_UNSUPPORTED: Final = Template("unsupported for {count} more reasons (--format json lists them)")

WEIGHTS: Final = Template(
    "GEMM weights are stored as {formats}; the GEMM kernel dequantizes them; norms, biases "
    "and tables keep the precision of activations"
)
PRODUCTS_NOTE: Final = Template("fp32 means {products} here; `--matmul-precision highest` computes in true fp32")
DIFFERING_NOTE: Final = Template(
    "Chips differ in what they compute at fp32: {products:and}; `--matmul-precision highest` compares true fp32"
)
PLACED: Final = Template("{hardware} runs the model as {placement}")
PLACED_ON: Final = Template("{form} on {devices}")
SET: Final = Template("set: {change}")
BUDGET: Final = Template("each chip at its largest power mode within {budget}")
MEAN_BUDGET: Final = Template("every power mode whose average power is within {budget}")
NO_MODE: Final = Template("left out, because no power mode is within {budget}: {names:list}[ and {more:n more chip}]")
REASON: Final = Template("{hardware} ({reason})")

NO_HOST: Final = Template("{host} is not counted: none of the hardware needs a host")
ALONE: Final = Template("{hardware:and} alone: without transfers over the host link and operators on a host")
OMITTED: Final = Template(
    "device only: {operations:and}, which the host of {hardware} computes, is left out[ ({share} of the MACs)]"
)
HOST_RANKED: Final = "`recommend` ranks energy and power with a host"
HOSTED: Final = Template("energy and power of {hardware:and} include the static power of {host} as the host")
HOSTLESS: Final = Template(
    "the energy of {hardware:and} excludes a host (`{host}`, for example, adds one[; {others:list}])"
)
HOSTLESS_OTHER: Final = Template("for {hardware:and}, `{host}`")
MANY_HOSTLESS: Final = Template("the energy of {hardware:and} excludes a host (`--host` adds one)")
LAUNCHED: Final = Template("eager: {host} launches kernels of {hardware:and} in {seconds:s} each[; {how}]")
BESIDE: Final = "a core on the same chip"
OTHER_HOST: Final = "`--host` selects another, `joulemap measure host` times this machine"
FALLEN: Final = Template(
    "{compiler} does not run {operations:and}: {helper} computes these[ and {others}] for {hardware:and}, taking "
    "{latency} of the time and {energy} of the energy, including copies"
)
FALLEN_BESIDE: Final = {
    "first": Template("the {count:n operator} after the first unsupported one"),
    "stretch": Template("{count:n operator} outside the offloaded segment"),
    "": Template("{count:n operator}"),
}
FALLEN_MORE: Final = Template("{count} more compilers leave operators to a host (--format json lists them)")

ENGINE_ON: Final = Template("{engine} on {hardware:and}")
ENGINE_NOUN, COMPILER_NOUN = "engines", "compilers"
ENGINES: Final = Template("engine means {engines}; `--runtime fused` uses the framework's compiler")
COMPILERS: Final = Template(
    "fused means {own}; on other chips, the framework's compiler[. `--runtime engine` predicts what "
    "deployments would use: {deployed}]"
)

CALIBRATED: Final = Template(
    "{row.hardware} uses the calibration {row.calibration} ({row.place}), {fit}; `--calibration none` disables it"
)
INHERITED: Final = Template(
    "{row.inheritors:and} {verb} the calibration of {row.hardware} (same generation, {row.hardware_generation}): "
    "{row.calibration}[ ({place}), {fit}]; `--calibration own` disables this"
)
FIT: Final = Template(
    "fitted to {measurement_count:n measurement} of {family_count:n family|families}[, median error "
    "{errors:and}][ {held_out}]"
)
HELD_OUT: Final = "with the family held out"
ERROR: Final = Template("{error:%} of {quantity}")
WEIGHT: Final = Template(
    "the fit combines class defaults with {measurement_count:n measurement} of {hardware}, whose weight is "
    "{weights:and}; coefficients change by at most {farthest:%} ({most_moved}), and the measurements determine "
    "{determined_count} of the {moved_count} that change"
)
WEIGHT_IN: Final = Template("{share:%} in {quantity}")
UNCALIBRATED: Final = Template(
    "not calibrated: {others:list}[ and {more} more]; part of the difference may come from calibration "
    "(`--calibration none` compares class defaults)"
)
RECALLED: Final = Template(
    "{fraction:%} of the energy of {hardware} uses published numbers recalled without checking the source"
)
