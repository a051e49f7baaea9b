"""Counts of ONNX exports compared with traces of the same torchvision models.

python benchmarks/onnx_export.py [MODEL ...]

Weights are drawn at random: an exporter merges equal biases and leaves out zero ones.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
import warnings

import torch
import torchvision

from joulemap.catalog.sheet import load_models
from joulemap.domain.settings import Settings
from joulemap.workspace import Workspace

MODELS = (
    "resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_0", "efficientnet_b0", "efficientnet_v2_s",
    "densenet121", "googlenet", "inception_v3", "shufflenet_v2_x0_5", "regnet_y_400mf", "mnasnet0_5", "vgg11_bn",
    "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "maxvit_t", "r3d_18", "fcn_resnet50",
    "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "ssdlite320_mobilenet_v3_large",
)  # fmt: skip


def export(name: str, path: str) -> None:
    """Write a model with random weights, at its default input shape."""
    is_of_backbone = name.startswith(("fcn", "deeplab", "lraspp", "ssdlite"))
    given = {"weights_backbone": None} if is_of_backbone else {}
    module = torchvision.models.get_model(name, weights=None, **given).eval()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.1)
    for buffer in module.buffers():
        if buffer.dtype.is_floating_point:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    image = torch.randn(1, *load_models()[name].input_shape)
    torch.onnx.export(module, (image,), path, dynamo=False, opset_version=17)


def main() -> None:
    """Print, for each model, MACs and latency of its export relative to those of its trace, and seconds to read it."""
    warnings.simplefilter("ignore")
    torch.backends.mha.set_fastpath_enabled(False)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        workspace = Workspace(os.path.join(folder, "export.duckdb"))
        settings = Settings(hardware=("l4", "tpu_v4"), precision=("bf16",), runtime=("engine",))
        print("model                           MACs   latency on l4, tpu_v4 (engine, bf16)   seconds to read")
        for name in sys.argv[1:] or MODELS:
            path = os.path.join(folder, f"{name}.onnx")
            export(name, path)
            start = time.perf_counter()
            rows = workspace.compare(path, settings).rows
            taken = time.perf_counter() - start
            traced = {row.hardware: row.latency_s or math.nan for row in workspace.compare(name, settings).rows}
            ratios = [(row.latency_s or math.nan) / traced[row.hardware] for row in rows]
            macs = [workspace.workload(one).mac_count for one in (path, name)]
            print(f"{name:30} {macs[0] / macs[1]:6.4f}   {' '.join(f'{one:6.4f}' for one in ratios):38} {taken:6.2f}")


if __name__ == "__main__":
    main()
