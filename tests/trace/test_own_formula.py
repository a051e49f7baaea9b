"""A formula of one's own, for an operator of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import joulemap
from joulemap.ask import fact
from joulemap.ask.rule import find_assumed
from joulemap.construct.model import trace_request
from joulemap.construct.source import ModelRequest, resolve_model
from joulemap.generated.model import ModelCaveat
from joulemap.physics.record.workload import Operator
from joulemap.show import caveat
from joulemap.system.errors import ModelError, UsageError
from joulemap.trace.formula import own
from joulemap.workspace import Workspace

FILE = """
import torch
{imports}

@torch.library.custom_op("{space}::attend", mutates_args=())
def attend(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mT

@attend.register_fake
def _(x):
    return x.new_empty(*x.shape[:-1], x.shape[-2])

class Net(torch.nn.Module):
    def forward(self, x):
        return attend(x)

def net():
    return Net(), torch.zeros(3, 8, 16)
"""

FORMULA = """
import joulemap

@joulemap.formula("{space}::attend")
def count(call):
    batch, rows, width = call.shape(0)
    return joulemap.OperatorCost(mac_count=batch * rows * rows * width, special_count=call.output_count)
"""


@pytest.fixture(autouse=True)
def _no_formulas() -> Iterator[None]:
    yield
    own._programs.clear()


def request(tmp_path: Path, space: str, imports: str = "") -> ModelRequest:
    path = tmp_path / f"{space}.py"
    path.write_text(FILE.format(space=space, imports=imports))
    return resolve_model(f"{path}:net", {})


def only(request: ModelRequest) -> Operator:
    (found,) = trace_request(request).operators
    return found


def test_a_formula_in_a_models_file_counts_that_model_alone(tmp_path: Path) -> None:
    found = only(request(tmp_path, "space_a", FORMULA.format(space="space_a")))
    assert (found.kind, found.operation) == ("matmul", "attend")
    assert (found.mac_count, found.special_count) == (3 * 8 * 8 * 16, 3 * 8 * 8)
    assert (found.gemm_m, found.gemm_n, found.gemm_k, found.gemm_groups) == (24, 8, 16, 1)
    assert only(request(tmp_path, "space_b")).kind == "uncounted"


def test_a_formula_beside_a_models_file_is_part_of_its_key(tmp_path: Path) -> None:
    beside = tmp_path / "counts.py"
    beside.write_text(FORMULA.format(space="space_c"))
    first = request(tmp_path, "space_c", "import counts")
    assert only(first).mac_count == 3 * 8 * 8 * 16
    beside.write_text(FORMULA.format(space="space_c").replace("mac_count=", "mac_count=2 * "))
    second = request(tmp_path, "space_c", "import counts")
    assert only(second).mac_count == 2 * 3 * 8 * 8 * 16
    assert first.key != second.key


def test_a_formula_of_a_program_holds_and_is_part_of_the_key(tmp_path: Path) -> None:
    asked = request(tmp_path, "space_d")
    before = asked.key

    @joulemap.formula("space_d::attend")
    def count(call: joulemap.OperatorCall) -> joulemap.OperatorCost:
        return joulemap.OperatorCost(elementwise_count=call.input_count, kind="reduction")

    found = only(asked)
    assert (found.kind, found.elementwise_count) == ("reduction", 3 * 8 * 16)
    assert asked.key != before


def test_a_formula_that_gives_no_cost_is_refused(tmp_path: Path) -> None:
    asked = request(tmp_path, "space_e")
    joulemap.formula("space_e::attend")(lambda call: call.output_count)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match="the formula of space_e::attend gives a int, expected a joulemap"):
        trace_request(asked)
    joulemap.formula("space_e::attend")(lambda _: joulemap.OperatorCost(mac_count=8, kind="softmax"))
    with pytest.raises(ModelError, match="gives MACs and the kind softmax, expected one of linear"):
        trace_request(asked)


def test_what_is_no_cost_says_what_is_right() -> None:
    with pytest.raises(UsageError, match="mac_count is -1, expected a whole number of at least 0"):
        joulemap.OperatorCost(mac_count=-1)
    with pytest.raises(UsageError, match="kind is 'magic'; known: conv"):
        joulemap.OperatorCost(kind="magic")
    with pytest.raises(UsageError, match="whose product is the 8 MACs"):
        joulemap.OperatorCost(mac_count=8, gemm=(2, 2, 1, 1))
    with pytest.raises(UsageError, match="'attend', expected namespace::operator"):
        joulemap.formula("attend")


def test_a_custom_operator_is_not_counted_by_the_name_of_another() -> None:
    call = own.OperatorCall((torch.zeros(2),), {}, (torch.zeros(2),), "mine.relu.default")
    from joulemap.trace.formula import count

    assert count("relu", call).kind == "uncounted"


@pytest.mark.slow
def test_an_uncounted_operator_is_told_with_the_way_to_count_it(tmp_path: Path) -> None:
    path = tmp_path / "space_f.py"
    path.write_text(FILE.format(space="space_f", imports=""))
    answer = Workspace(tmp_path / "own.duckdb").compare(f"{path}:net", hardware=["l4", "t4"])
    (uncounted,) = (one for one in answer.facts.of(fact.Caveat) if one.kind == "uncounted")
    assert uncounted.values == {"name": "space_f::attend", "operators": 1}
    assert '@joulemap.formula("space_f::attend") adds them' in caveat.describe_caveat(uncounted, answer.facts.runs)


def test_the_hint_names_the_operator() -> None:
    row = ModelCaveat(kind="uncounted", text="mine.attend.default", operator_count=2)
    (found,) = find_assumed(row)
    assert caveat.describe_values(found.kind, found.values) == (
        'operations of 2 x mine::attend are not counted, only bytes; @joulemap.formula("mine::attend") adds them'
    )
