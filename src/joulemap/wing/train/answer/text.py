"""Text of the training answer, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template(
    "training {name}[, {tokens:#} tokens per sequence], batch {batches:and}, {precisions:and}, {settings:list}"
)
SETTINGS: Final[Mapping[str, Template]] = {
    "optimizer": Template("{optimizer}"),
    "zero": Template("ZeRO {zero}"),
    "recompute": Template("recomputation"),
    "lora": Template("LoRA rank {lora} on {layers}"),
    "quantize": Template("{quantize} base"),
    "tensor_devices": Template("{tensor_devices} tensor-parallel devices"),
    "sequence_parallel": Template("sequence parallel"),
    "pipeline_devices": Template("{pipeline_devices} stages"),
    "accumulate": Template("{accumulate} micro-batches"),
}
"""Setting of training -> its text in a title; of settings with default values, only the optimizer is named."""
QUERY_AND_VALUE: Final = "query and value"
ALL_LAYERS: Final = "all linear layers"

COLUMNS: Final = Template(
    "hardware @label | batch batch! | precision! | {unit} ~{rate} | energy per sample sample_j | "
    "range -sample_j:energy_half_width | step time step_s | MFU utilization_fraction | {power} device_power_w | "
    "memory share memory_fraction | exposed share of communication exchange_seen_fraction? | "
    "USD per million samples #usd_per_million"
)
SAMPLE: Final = "energy per sample"
RANGE: Final = "range"
KEPT: Final = "batch | precision | step time | range | MFU"

POWER: Final = "power"
DEVICE_POWER: Final = "power per device"

AT_LEAST: Final = Template("at least {value:s}")
"""Step time that leaves out parts of the step."""
MEMORY: Final = "Memory per device"
MEMORY_COLUMNS: Final = (
    "hardware @label | *batch | *weights weight_bytes | *gradients gradient_bytes | *optimizer state state_bytes | "
    "*activations activation_bytes | *process reserved_bytes | *memory share memory_fraction | fits with fits_with?"
)
TIME: Final = "Time per step"
TIME_COLUMNS: Final = (
    "hardware @label | *batch | *forward forward_s | *backward backward_s | *recomputation again_s | "
    "*exposed communication exchange_s | *optimizer optimizer_s | pipeline bubble bubble_s? | "
    "communication without overlap exchange_alone_s? | run run_id"
)
COST: Final = "Cost and carbon"
COST_COLUMNS: Final = (
    "hardware @label | *batch | payment way | *cost per million samples usd_per_million:usd_half_width | "
    "price price_told? | *CO2 per million samples gco2_per_million | total time total_s? | total energy total_kwh? | "
    "total cost total_usd? | total CO2 total_gco2?"
)

NOTES: Final = (
    "MFU: model FLOPs utilization: MACs per second of the forward and backward pass, as a share of the dense peak; "
    "masked and recomputed MACs are not counted",
    "the loss is a cross-entropy of the model's outputs in single precision; data loading, augmentation, dropout, "
    "gradient clipping and gradient scaling are not counted",
)
SEVERAL: Final = (
    "gradients are exchanged in buckets while the next ones are computed; a collective is assumed to take no compute "
    "units from concurrent GEMMs, so exposed communication may be too low",
    "each of several devices has an equal part of the batch (data parallel), of each GEMM (tensor parallel, "
    "--tensor-devices) or of the layers (--pipeline-devices). All stages wait for the last, which has the logits; the "
    "pipeline bubble is the time in which it fills and drains. Memory refers to the first stage, the fullest, with "
    "activations of one micro-batch per stage",
)
"""Notes that an answer shows if a step runs on several devices."""
ADAPTERS: Final = (
    "only adapters (LoRA) have gradients and optimizer state; the base is frozen. A kernel dequantizes a quantized "
    "base (QLoRA) to memory before each GEMM, forward, backward and recomputed, as bitsandbytes does. ZeRO shards "
    "adapters, not the frozen base"
)
PAID: Final = Template("cost and carbon: {use}; `joulemap cost --details` lists the other assumptions")
ANALYZE: Final = Template("analyze {step} {spelled} --precision {precision} --batch {micro_batch}")

NEEDS: Final = Template("needs {needed:B} per device, but has {capacity:B} usable")
UNSUPPORTED: Final = Template(
    "{hardware} does not run this model at {precision}[ on {devices:#} devices]"
    "[ (it has {precisions:list}: --precision)]"
)
UNLINKED: Final = Template("{error} (--tensor-devices x --pipeline-devices)")
NOTHING: Final = Template("{runs:and} {why}[ (it fits with {fits_with})]")
EACH: Final = Template("{runs:and}: each {why}[ (it fits with {fits_with})]")
REFUSED_RUN: Final = Template("{label} at batch {batch:#}")
