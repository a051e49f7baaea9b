"""A saved `torch.export` program."""

from __future__ import annotations

import logging
from typing import Any

import torch

from joulemap.errors import ModelError
from joulemap.trace.source import ModelRequest


def build(request: ModelRequest) -> tuple[torch.nn.Module, Any]:
    """Return (module, (positional, named) inputs it was exported with, or None if it keeps none).

    Raises ModelError for a file that is damaged or something else.
    """
    assert request.path is not None
    logger = logging.getLogger("torch.export")
    before = logger.disabled
    logger.disabled = True
    try:
        program = torch.export.load(request.path)
        module = program.module(check_guards=False)
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"{request.path} cannot be read as a torch.export program: {reason[0] if reason else type(error).__name__}"
        ) from error
    finally:
        logger.disabled = before
    return module, program.example_inputs
