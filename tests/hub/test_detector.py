"""Built-in detectors: their MACs and parameters as their publishers state them."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.catalog.sheet import load_shipped
from joulemap.wing.hub.detector import build_detector
from models import trace


def doubled(width: int) -> float:
    """Return the GFLOPs that publishers count too much of a transposed convolution of 2 x 2 from 80 x 80 pixels.

    Their counter multiplies the kernel by the positions of the output, four times those of the input.
    """
    return 2 * 3 * 80 * 80 * 4 * width * width / 1e9


PUBLISHED = {
    "yolov5n": (1.9, 4.5), "yolov5s": (7.2, 16.5), "yolov5m": (21.2, 49.0), "yolov5l": (46.5, 109.1),
    "yolov5x": (86.7, 205.7),
    "yolov8n": (3.2, 8.7), "yolov8s": (11.2, 28.6), "yolov8m": (25.9, 78.9), "yolov8l": (43.7, 165.2),
    "yolov8x": (68.2, 257.8),
    "yolo11n": (2.6, 6.5), "yolo11s": (9.4, 21.5), "yolo11m": (20.1, 68.0), "yolo11l": (25.3, 86.9),
    "yolo11x": (56.9, 194.9),
    "yolox_s": (9.0, 26.8), "yolox_m": (25.3, 73.8), "yolox_l": (54.2, 155.6), "yolox_x": (99.1, 281.9),
    "yolov5n_seg": (2.0, 7.1), "yolov5s_seg": (7.6, 26.4), "yolov5m_seg": (22.0, 70.8), "yolov5l_seg": (47.9, 147.7),
    "yolov5x_seg": (88.8, 265.7),
    "yolov8n_pose": (3.3, 9.2), "yolov8s_pose": (11.6, 30.2), "yolov8m_pose": (26.4, 81.0),
    "yolov8l_pose": (44.4, 168.6), "yolov8x_pose": (69.4, 263.2),
    "yolo11n_pose": (2.9, 7.6), "yolo11s_pose": (9.9, 23.2), "yolo11m_pose": (20.9, 71.7), "yolo11l_pose": (26.2, 90.7),
    "yolo11x_pose": (58.8, 203.3),
    "yolov8n_seg": (3.4, 12.6 - doubled(64)), "yolov8s_seg": (11.8, 42.6 - doubled(128)),
    "yolov8m_seg": (27.3, 110.2 - doubled(192)), "yolov8l_seg": (46.0, 220.5 - doubled(256)),
    "yolov8x_seg": (71.8, 344.1 - doubled(320)),
    "yolo11n_seg": (2.9, 10.4 - doubled(64)), "yolo11s_seg": (10.1, 35.5 - doubled(128)),
    "yolo11m_seg": (22.4, 123.3 - doubled(256)), "yolo11l_seg": (27.6, 142.2 - doubled(256)),
    "yolo11x_seg": (62.1, 319.0 - doubled(384)),
    "ssd_mobilenet_v1": (6.8, 2.47), "ssd_mobilenet_v2": (16.818, 3.775),
    "ssdlite_mobilenet_v2": (4.475, 1.525), "mobilenet_v1": (4.2, 1.138),
}  # fmt: skip
"""Model -> published millions of parameters, and GFLOPs of one picture at two for each MAC.

Source: Ultralytics and Megvii README files; Open Model Zoo, ssd_mobilenet_v1_coco,
ssd_mobilenet_v2_coco (its pages of 2019 to 2021, recalled) and ssdlite_mobilenet_v2; Howard et al., MobileNets, 2017.
"""


@pytest.mark.parametrize("name", PUBLISHED)
def test_detector_has_published_size(name: str) -> None:
    parameters, flops = PUBLISHED[name]
    shipped = load_shipped()[name]
    assert shipped.is_affine
    assert_close(shipped.parameter_count, parameters * 1e6, rel=0.02)
    assert_close(2 * shipped.mac_count, flops * 1e9, rel=0.02)


@pytest.mark.parametrize("family", ["yolov8", "yolo11"])
def test_an_export_decodes_boxes(family: str) -> None:
    # the mean of 16 bins for each of four sides at 80 x 80 + 40 x 40 + 20 x 20 positions; a box has 4 + 80 numbers
    shipped = load_shipped()
    more = shipped[f"{family}n_boxes"].mac_count - shipped[f"{family}n"].mac_count
    assert more == 8400 * 4 * 16
    module, image = build_detector(f"{family}n_boxes", {"pixels": 320})
    assert trace(module.eval(), image).operators[-1].output_shape == (1, 84, 2100)
