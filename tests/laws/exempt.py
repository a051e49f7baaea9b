"""Comparisons that may break a law: where it does not apply, each with the reason and its source, and known faults."""

from __future__ import annotations

from typing import Final

from joulemap.physics.record.product import NVIDIA
from laws.table import Exempt

COPIES: Final = "physics/architecture/npu: copies of a model share a batch, each with its own part of the chip"

EXEMPT: Final = (
    *(
        Exempt(
            law=law,
            chip=chip,
            most=2.0,
            why="an operator that does not depend on the batch is divided among the copies of a model like the others",
            source=COPIES,
            is_fault=True,
        )
        for chip in ("trainium*", "inferentia*", "luxonis*")
        for law in ("batch is not faster", "batch is not cheaper", "size is not faster", "size is not cheaper")
    ),
    *(
        Exempt(
            law="batch is not cheaper",
            chip=chip,
            most=1.15,
            why="copies are chosen for time, and fewer copies that are almost as fast read less",
            source=COPIES,
        )
        for chip in ("ax*", "rk3588*")
    ),
    *(
        Exempt(
            law=law,
            chip=chip,
            most=1.35,
            why="at a low power limit, units that wait draw power too, so that more of them lower the clock",
            source=source,
        )
        for chip, source in (
            ("*laptop*", "physics/anchor.py: boards with GDDR"),
            ("kpu_*", "physics/power.py: static power of all units"),
        )
        for law in ("units", "better chip")
    ),
    *(
        Exempt(
            law=law,
            chip="hailo*",
            most=1.35,
            why="activations that do not grow with the batch are divided by it: a larger one needs fewer contexts",
            source="physics/architecture/npu/fabric.py, lay_out",
            is_fault=True,
        )
        for law in ("batch is not faster", "batch is not cheaper")
    ),
    *(
        Exempt(
            law=law,
            chip="hailo*",
            most=40.0,
            why="a loop of cells has more layers than a recurrent layer, and needs contexts where that needs one",
            source="physics/architecture/npu/fabric.py: contexts, layer_switch",
        )
        for law in ("steps of a loop", "a cell is its layer")
    ),
    Exempt(
        law="batch is not faster",
        chip="ax*",
        most=1.02,
        why="copies of a model share a batch evenly only if their number divides it",
        source=COPIES,
    ),
    *(
        Exempt(
            law="units",
            model=model,
            most=2.0,
            why="more rows in progress overflow the same last cache, so that each is read again",
            source="physics/architecture/gpu/kernel_class.py, read_again",
        )
        for model in ("*softmax*", "*norm*")
    ),
    *(
        Exempt(
            law=law,
            chip="hailo*",
            most=2.0,
            why="a compiler divides a fabric into contexts for the rate of images, not for the time of one",
            source="physics/architecture/npu/fabric.py",
        )
        for law in ("depth is not faster", "depth is not cheaper", "size is not faster")
    ),
    Exempt(
        law="better chip",
        chip="hailo*",
        model="*softmax*",
        most=5.0,
        why="a byte to or from a Hailo-10H takes 1.05 ns, measured with images; one of a Hailo-8L that of its lanes",
        source="host_transfer of catalog/data/family/hailo.toml: Hailo Model Zoo",
    ),
    *(
        Exempt(
            law="better chip",
            chip=chip,
            most=1.7,
            why="threads fork and join in a tree, which has more levels for more cores: a kernel of microseconds waits",
            source="physics/architecture/cpu: region_cost",
        )
        for chip in ("epyc*", "threadripper*", "xeon*")
    ),
    Exempt(
        law="no cliff",
        model="*softmax*",
        most=3.5,
        why="of a stream a little larger than the last cache little stays, and memory is up to ten times as slow",
        source="physics/traffic.py, held_share",
    ),
    Exempt(
        law="batch is not cheaper",
        vendor=NVIDIA,
        most=1.05,
        why="a library chooses tiles for time, and fewer large ones that take hardly longer keep fewer units awake",
        source="physics/architecture/gpu: tiles",
    ),
    Exempt(
        law="batch is not faster",
        chip="rk3588*",
        most=1.2,
        why="one sample of a network with many small products runs on one core, those of a larger batch share cores",
        source="physics/architecture/npu/__init__.py",
        is_fault=True,
    ),
    *(
        Exempt(
            law=law,
            model="*grouped*",
            vendor=NVIDIA,
            most=12.0,
            why="cuDNN computes groups of up to 48 channels, if no power of two, on vector lanes, and addresses of "
            "channels that fill no lines one by one; both were measured on one H200, and held out on one RTX 4090",
            source="physics/architecture/gpu/trait.py, has_cudnn",
        )
        for law in ("padding is time", "padding is energy")
    ),
)
