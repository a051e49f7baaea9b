"""Built-in detectors: their MACs and parameters as their publishers state them."""

from __future__ import annotations

import pytest

from joulemap.catalog.sheet import load_shipped

PUBLISHED = {
    "yolov5n": (1.9, 4.5), "yolov5s": (7.2, 16.5), "yolov5m": (21.2, 49.0), "yolov5l": (46.5, 109.1),
    "yolov5x": (86.7, 205.7),
    "yolov8n": (3.2, 8.7), "yolov8s": (11.2, 28.6), "yolov8m": (25.9, 78.9), "yolov8l": (43.7, 165.2),
    "yolov8x": (68.2, 257.8),
    "yolo11n": (2.6, 6.5), "yolo11s": (9.4, 21.5), "yolo11m": (20.1, 68.0), "yolo11l": (25.3, 86.9),
    "yolo11x": (56.9, 194.9),
    "yolox_s": (9.0, 26.8), "yolox_m": (25.3, 73.8), "yolox_l": (54.2, 155.6), "yolox_x": (99.1, 281.9),
    "ssd_mobilenet_v1": (6.8, 2.47), "ssd_mobilenet_v2": (6.1, 1.52), "mobilenet_v1": (4.2, 1.138),
}  # fmt: skip
"""Model -> published millions of parameters, and GFLOPs of one picture at two for each MAC.

Source: Ultralytics and Megvii README files; Open Model Zoo, ssd_mobilenet_v1_coco; Hailo Model Zoo, ssd_mobilenet_v2,
without its parameters; Howard et al., MobileNets, 2017.
"""


@pytest.mark.parametrize("name", PUBLISHED)
def test_detector_has_published_size(name: str) -> None:
    parameters, flops = PUBLISHED[name]
    shipped = load_shipped()[name]
    assert shipped.is_affine
    assert shipped.parameter_count == pytest.approx(parameters * 1e6, rel=0.02, abs=0)
    assert 2 * shipped.mac_count == pytest.approx(flops * 1e9, rel=0.02, abs=0)
