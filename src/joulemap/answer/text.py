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

# Uncertainty

BRACKETS: Final = "four of five measurements should fall inside the brackets (80 % intervals)"
SPREAD: Final = Template("80 % intervals relative to the prediction: {spans:list}")
SPAN: Final = Template("{quantity} {ends}")
NEW: Final = Template(
    "[the intervals of {hardware:few}][{all}] are estimated from other kinds of work, because no {work} was measured "
    "on that class of chip[; {served}]"
)
ANY_WORK, DECODE_STEP = "work of this kind", "single decode step"
SERVED: Final = "`joulemap llm` predicts serving and has measurements of it"

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

WEIGHTS: Final = Template(
    "GEMM weights are stored as {formats}; the GEMM kernel dequantizes them; norms, biases "
    "and tables keep the precision of activations"
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
HOSTLESS: Final = Template(
    "the energy of {hardware:and} excludes a host (`{host}`, for example, adds one[; {others:list}])"
)
LAUNCHED: Final = Template("eager: {host} launches kernels of {hardware:and} in {seconds:s} each[; {how}]")
BESIDE: Final = "a core on the same chip"
OTHER_HOST: Final = "`--host` selects another, `joulemap measure host` times this machine"

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
