"""Names of pipelines for the core: stages joined by +, each with a rate or a number of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.plan import JOIN, ModelNames
from joulemap.system import fold_name
from joulemap.wing.pipeline import PICTURE, SPEECH, UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from joulemap.domain import Settings
    from joulemap.plan import Model


FRAME: Final = "frame"
"""Unit of work of a pipeline, in which a frame may need several inferences."""

AROUND: Final = ("prepare(", "boxes(")
"""Prefixes of the names of pre- and postprocessing stages, which a host computes."""


class PipelineNames(ModelNames):
    """Pipelines such as `yolov8n:30fps + mobilenet_v2:5/frame`, `sdxl-txt2img(steps=30)` and `whisper_tiny`."""

    def claims(self, name: str, settings: Settings) -> bool:
        """Return True for the name of a pipeline."""
        del settings
        return is_pipeline(name)

    def find_claimed(self, name: str, settings: Settings, batch: int | None) -> Model:
        """Return the pipeline of one frame; raise UsageError if the text cannot be parsed, and otherwise the errors of
        `find_model`.
        """
        from joulemap.wing.pipeline.stage import find_pipeline

        return find_pipeline(name, settings, batch)

    def find(self, name: str, settings: Settings, batch: int | None) -> Model | None:
        """Return a pre- or postprocessing stage, such as `prepare(size=640)`; None for any other name."""
        if not _is_around(name):
            return None
        from joulemap.wing.pipeline.around import find_around

        return find_around(name, settings, batch)

    def is_name(self, word: str) -> bool:
        """Return True for stages joined by +, a stage with a rate, a built-in pipeline, or pre- or postprocessing."""
        return is_pipeline(word) or _is_around(word)

    def list_names(self) -> Sequence[str]:
        """Return the names of the built-in pipelines."""
        from joulemap.wing.pipeline.stage import list_named

        return list_named()

    def list_parts(self, model: str) -> tuple[str, ...] | None:
        """Return the models of a pipeline's stages, without pre- and postprocessing; None for any other name."""
        if not is_pipeline(model):
            return None
        from joulemap.wing.pipeline.stage import read_pipeline

        return tuple(stage.model for stage in read_pipeline(model).stages if not _is_around(stage.model))

    def count_in(self, model: str) -> str:
        """Return the noun of a frame for a pipeline with a rate; empty for any other name."""
        if not is_pipeline(model):
            return ""
        from joulemap.wing.pipeline.stage import read_pipeline

        return FRAME if read_pipeline(model).frames_per_s else ""


def is_pipeline(word: str) -> bool:
    """Return True for stages joined by +, a stage with a rate, or a built-in pipeline."""
    name = word.partition("(")[0].lower().strip()
    is_named = name.endswith(PICTURE) or (name.startswith(SPEECH) and _is_speech(name))
    return is_named or JOIN in word or (":" in word and word.lower().rstrip().endswith(UNITS))


def _is_around(word: str) -> bool:
    return word.lower().lstrip().startswith(AROUND)


def _is_speech(name: str) -> bool:
    """Return True for the name of a speech pipeline; False for one of its stages or for a file."""
    from joulemap.wing.pipeline.stage import read_spellings

    return fold_name(name) in read_spellings()


NAMES: Final = PipelineNames()
"""Names of pipelines."""
