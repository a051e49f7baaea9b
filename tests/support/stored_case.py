"""Configurations of which predictions are compared with stored runs, and with those of a browser."""

from __future__ import annotations

CHIPS = (
    "a100_sxm4_80gb", "alveo_v70_dpu_c20b14", "apple_m4_max", "apple_m4_neural_engine", "b200_sxm", "coral_edge_tpu",
    "dpu_b4096_kv260", "epyc_9654", "gaudi3", "gb10", "gh200", "grace", "h100_pcie", "h100_sxm5", "h200_sxm", "hailo_8",
    "inferentia2", "jetson_orin_nx_dla", "kpu_t256", "kpu_t64", "l4", "mi300x", "nrf52840", "p4", "plasticine",
    "qrb5165_hexagon698", "raspberry_pi_5", "rk3588_npu", "rtx_4090", "rtx_5090", "snapdragon_8_elite_npu", "t4",
    "tda4vm_c7x_mma", "tpu_v4", "tpu_v7", "v100_sxm2", "xeon_8490h", "ryzen_ai_max_395", "a10g",
)  # fmt: skip
"""Chips of every class, with and without a calibration, a fallback host, TF32 and measured loads; one of a family."""

MODELS = ("resnet50", "vit_b_16", "efficientnet_b0")
PRECISIONS = ("fp32", "bf16", "int8")
BATCHES = (1, 7)
RUNTIMES = ("eager", "fused", "engine", "graph")
