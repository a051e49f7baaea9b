"""Work around a model on the host: a picture made ready for a detector, and boxes found in its output.

    prepare(width=1920,height=1080,size=640)    resize, scale and quantize a picture to size x size
    boxes(count=8400,classes=80)                the best class of each box, and non-maximum suppression

Both are stages of a pipeline: `prepare(size=640):30fps + yolov8n:1/frame + boxes:1/frame`. The host of an accelerator
computes them, whatever the compiler supports; a processor or GPU computes them itself. A stage that is not named is not
counted, as in published rates of the device alone.

    prepare = `PIXEL_OPERATIONS` x size^2      boxes = `VALUE_OPERATIONS` x count x (classes + 5)
Source: Vitis AI Model Zoo 3.5 (Xilinx/Vitis-AI @b2b2279), VEK280 with a Cortex-A72. The time per frame of one thread,
less a fourteenth of the time per batch of several threads, is 7 ns per pixel of the input (ResNet-50 and 152, VGG-19,
Inception, YOLOv3). It is up to 1.5 ns per value of the output (YOLOv7).
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from joulemap.domain import Argument, Settings, Value, read_arguments
from joulemap.domain.operator.name import find_operator
from joulemap.physics import Workload
from joulemap.plan import Model, Talk
from joulemap.system import frozen

KIND: Final = "around"
"""Kind of workload request that stands for pre- or postprocessing."""

PIXEL_OPERATIONS: Final = 64
"""Vector operations per pixel of the prepared picture."""

VALUE_OPERATIONS: Final = 12
"""Vector operations per coordinate, objectness or class score of a box."""

ROWS: Final = 5
"""Values of a box besides its class scores: four coordinates and the objectness."""

COLOURS: Final = 3

ARGUMENTS: Final = {
    "prepare": (Argument("width", 1920), Argument("height", 1080), Argument("size", 640)),
    "boxes": (Argument("count", 8400), Argument("classes", 80)),
}
"""Name of pre- or postprocessing -> its arguments."""

OPERATIONS: Final = {"prepare": "prepare_image", "boxes": "find_boxes"}
"""Name of pre- or postprocessing -> operation; no compiler of an accelerator supports it, so it runs on the host."""


@frozen(kw_only=True)
class Around:
    """Pre- or postprocessing stage with its sizes."""

    name: str
    """Name of the stage: `prepare` or `boxes`."""
    sizes: tuple[int, ...]
    """Values of the stage's arguments, in the order of `ARGUMENTS`."""

    def __str__(self) -> str:
        words = ",".join(f"{one.name}={size}" for one, size in zip(ARGUMENTS[self.name], self.sizes, strict=True))
        return f"{self.name}({words})"

    @property
    def elements(self) -> tuple[int, int, int]:
        """Number of (values read, values written, vector operations) per picture; a picture is read as bytes."""
        if self.name == "prepare":
            width, height, size = self.sizes
            pixels = size * size
            return COLOURS * width * height, COLOURS * pixels, PIXEL_OPERATIONS * pixels
        count, classes = self.sizes
        values = count * (classes + ROWS)
        return values, count * ROWS, VALUE_OPERATIONS * values

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the stage as a workload of one operator."""
        del talk
        from joulemap.trace.single import describe

        batch = model.request.batch or 1
        read, written, operations = (batch * number for number in self.elements)
        unary = find_operator(f"elementwise(kind=relu,elements={written})")
        assert unary is not None
        plain = describe(unary, 1, model.request.key)
        (operator,), (picture, result), (taken, given), (held, kept) = (
            plain.operators,
            plain.tensors,
            plain.accesses,
            plain.buffers,
        )
        operation = OPERATIONS[self.name]
        dtype, item = ("int8", 1) if self.name == "prepare" else (picture.dtype, taken.item_bytes)
        size = read * item
        return attrs.evolve(
            plain,
            model=str(self),
            batch=batch,
            operators=(attrs.evolve(operator, name=operation, operation=operation, elementwise_count=operations),),
            tensors=(attrs.evolve(picture, shape=(read,), dtype=dtype, byte_count=size), result),
            accesses=(attrs.evolve(taken, byte_count=size, fused_byte_count=size, item_bytes=item), given),
            buffers=(attrs.evolve(held, byte_count=size, item_bytes=item), kept),
            subgraphs=tuple(attrs.evolve(one, pattern=operation, name=operation) for one in plain.subgraphs),
        )


def read_around(name: str) -> Around | None:
    """Return the pre- or postprocessing stage that a name states; None for any other name.

    Raise UsageError for wrong sizes.
    """
    match = re.fullmatch(r"\s*(\w+)\s*(\(.*\))\s*", name)
    kind = match[1].lower() if match else ""
    if match is None or kind not in ARGUMENTS:
        return None
    values: dict[str, Value] = read_arguments(kind, name, match[2], ARGUMENTS[kind], str(EXAMPLES[kind]))
    return Around(name=kind, sizes=tuple(int(values.get(one.name, one.default or 0)) for one in ARGUMENTS[kind]))


EXAMPLES: Final = {
    kind: Around(name=kind, sizes=tuple(int(one.default or 0) for one in known)) for kind, known in ARGUMENTS.items()
}
"""Name of pre- or postprocessing -> stage with default sizes, as errors show it."""


def find_around(name: str, settings: Settings, batch: int | None) -> Model | None:
    """Return the pre- or postprocessing stage of a name as a model; None for any other name.

    Raise UsageError for wrong sizes.
    """
    around = read_around(name)
    if around is None:
        return None
    from joulemap.construct import ModelRequest
    from joulemap.wing.pipeline.stage import pipeline_version

    return Model(
        request=ModelRequest(
            model=str(around), kind=KIND, batch=batch or 1, is_default=True, version=pipeline_version()
        ),
        retrace=settings.retrace,
        names=around,
    )
