"""Every stored result of a served model is predicted, or has a reason that is known: none falls silent."""

from __future__ import annotations

from collections import Counter

import pytest

from joulemap.catalog.load import find_hardware
from joulemap.catalog.public import load_public_tables
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.predict import predict_together

KNOWN = {
    ("llamafile", "one sequence of 4,352 tokens needs 5.5 GB of each device, which has 4.0 GB"): 2,
    ("llamafile", "one sequence of 4,352 tokens needs 9.8 GB of each device, which has 8.0 GB"): 1,
    ("llamafile", "pentium_g4600: breaks waits"): 1,  # a known fault: a pass waits longer than its bytes take
    ("rkllm", "no built-in language model has that name"): 4,
    ("transformers", "no built-in language model has that name"): 32,
    ("sglang", "speculative decoding without a stated acceptance rate"): 8,
    ("trt", "speculative decoding without a stated acceptance rate"): 12,
    ("tt_metal", "wormhole_n150: TT-XLA and TT-MLIR 2026-08 does not run scan"): 1,
}
"""(Engine, reason) -> stored rows without a prediction."""


@pytest.mark.slow
def test_every_stored_row_is_predicted_or_known_not_to_be() -> None:
    rows = [row for table in load_public_tables().values() for row in table.read_rows() if isinstance(row, ServingRow)]
    chips = {name: find_hardware(name) for name in {row.hardware for row in rows}}
    found = predict_together([(row, chips[row.hardware]) for row in rows])
    reasons = Counter(
        (row.engine, one.text) for row, one in zip(rows, found, strict=True) if not isinstance(one, Prediction)
    )
    assert reasons == KNOWN
