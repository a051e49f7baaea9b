"""Decoders that ship, and deployments of them."""

from __future__ import annotations

from typing import Any

from joulemap.physics.record.hardware import Hardware
from joulemap.wing.decoder.engine.stack import Stack
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.pass_name import find_decoder
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads


def known_decoder(name: str) -> Decoder:
    """Return a decoder that ships."""
    decoder = find_decoder(name)
    assert decoder is not None
    return decoder


def deploy_decoder(
    decoder: Decoder, hardware: Hardware, stack: Stack, *, precision: str = "bf16", **others: Any
) -> Deployment:
    """Return a decoder on a chip under an engine."""
    return Deployment(workloads=PassWorkloads(decoder), hardware=hardware, stack=stack, precision=precision, **others)
