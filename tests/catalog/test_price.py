"""Prices of a person's own, and limits, in what a million inferences cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.cost import judge_break_even
from joulemap.domain.settings import Price, Site
from joulemap.generated.cost import BreakEven
from joulemap.plan.price import read_price_file
from joulemap.system.errors import ExitCode, UsageError
from joulemap.workspace import Workspace

FEW = ("--precision", "int8", "--batch", "1,8")


@pytest.mark.parametrize(
    ("fixed_b_usd", "life_a", "life_b", "expected"),
    [
        # Even at (190 - 105) / (0.00185 - 0.00124) = 139k million: the cheaper B wears out first; A does; neither does.
        (105.0, 162e9, 27.5e9, ("worn", "B", 27.5e9)),
        (105.0, 27.5e9, 162e9, ("beyond", "A", 27.5e9)),
        (105.0, 162e9, 140e9, ("within", "B", 140e9)),
    ],
)
def test_a_break_even_beyond_a_lifetime_says_whose(
    fixed_b_usd: float, life_a: float, life_b: float, expected: tuple[str, str, float]
) -> None:
    even = (190.0 - fixed_b_usd) / (0.00185 - 0.00124) * 1e6
    assert_close(even, 139.3e9, rel=1e-3)
    row = BreakEven(
        hardware_a="a", precision_a="int8", batch_a=1, way_a="bought", fixed_a_usd=190.0,
        variable_a_usd_per_million=0.00124, inferences_per_life_a=life_a, hardware_b="b", precision_b="int8",
        batch_b=1, way_b="bought", fixed_b_usd=fixed_b_usd, variable_b_usd_per_million=0.00185,
        inferences_per_life_b=life_b, break_even_inferences=even, cheaper_below="B", cheaper_above="A",
        is_within_life=even <= min(life_a, life_b), break_even_years=1.0, run_a=1, run_b=2,
    )  # fmt: skip
    assert judge_break_even(row) == expected


@pytest.mark.slow
def test_a_price_that_is_given_stands_in_place_of_the_catalogues(workspace: Workspace) -> None:
    plain = workspace.cost("resnet18", hardware=("l4", "t4"), precision="int8", batch=1)
    prices = (Price(hardware="NVIDIA L4", usd_per_hour=0.25), Price(hardware="T4", purchase_usd=900.0, source="shop"))
    own = workspace.cost("resnet18", hardware=("l4", "t4"), precision="int8", batch=1, site=Site(prices=prices))
    before = {(row.hardware, row.way): row for row in plain.rows}
    after = {(row.hardware, row.way): row for row in own.rows}
    given = after["l4", "rented"]
    assert (given.price, given.price_unit, given.price_basis, given.price_source) == (
        0.25, "USD/h", "given", "the question"
    )  # fmt: skip
    was = before["l4", "rented"]
    assert was.price is not None and was.usd_per_million is not None and given.usd_per_million is not None
    assert_close(given.usd_per_million / was.usd_per_million, 0.25 / was.price)
    bought = after["t4", "bought"]
    assert (bought.price, bought.price_unit, bought.price_basis, bought.price_source) == (900.0, "USD", "given", "shop")
    assert bought.inferences_per_life is not None
    assert_close(bought.hardware_usd_per_million, 900.0 / bought.inferences_per_life * 1e6)
    assert after["t4", "rented"].price_basis == before["t4", "rented"].price_basis != "given"


def test_a_break_even_counts_with_the_prices_that_are_given(workspace: Workspace) -> None:
    prices = (Price(hardware="l4", purchase_usd=2500.0), Price(hardware="t4", usd_per_hour=0.1))
    answer = workspace.cost("resnet18", hardware=("l4", "t4"), precision="int8", batch=1, site=Site(prices=prices))
    even = answer.break_even
    assert even is not None
    assert (even.hardware_a, even.way_a) == ("l4", "bought")
    assert_close(even.fixed_a_usd, 2500.0 * 1.4)


def test_prices_are_read_from_csv(tmp_path: Path) -> None:
    table = tmp_path / "prices.csv"
    table.write_text("hardware,usd_per_hour,purchase_usd,source\nT4,0.2,,contract\nkpu_t64,,99,\n")
    assert read_price_file(table) == (
        Price(hardware="T4", usd_per_hour=0.2, source="contract"),
        Price(hardware="kpu_t64", purchase_usd=99.0, source=str(table)),
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", "no column hardware"),
        ("a.csv", "hardware,usd_per_hour\n", "there is no price"),
        ("a.csv", "hardware,usd\nl4,3\n", "unknown column usd; columns are hardware, usd_per_hour"),
        ("a.csv", "hardware,usd_per_hour\nl4,much\n", "l4: usd_per_hour is 'much', expected a number"),
        ("a.csv", "hardware,usd_per_hour\nl4,-1\n", "l4: usd_per_hour is -1, expected above 0"),
        ("a.csv", "hardware,usd_per_hour\nl4\n", "more or fewer cells"),
    ],
)
def test_a_price_file_that_is_wrong_says_where(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_price_file(path)


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("price-per-hour", "l4=3", ExitCode.USAGE, "--site price-per-hour: '3' has no unit: write 3USD/h"),
        ("price-per-hour", "3USD/h", ExitCode.USAGE, "cannot read '3USD/h': write price-per-hour=l4=0.40USD/h"),
        ("price-per-hour", "l4=3USD/h,l4=4USD/h", ExitCode.USAGE, "price-per-hour of l4 is given twice"),
        ("price-per-hour", "l4=-3USD/h", ExitCode.USAGE, "usd_per_hour is -3, expected above 0"),
        ("purchase-price", "gpu=3USD", ExitCode.USAGE, "gpu is a class of hardware: name a chip of it"),
        ("purchase-price", "h101=3USD", ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
        ("purchase-price", "kpu_t64@6W=3USD", ExitCode.USAGE, "name kpu_t64"),
        ("price-file", "none.csv", ExitCode.USAGE, "none.csv: cannot be read"),
    ],
)
def test_a_price_that_is_wrong_is_one_line(
    name: str, value: str, code: ExitCode, message: str, joulemap: Run, tmp_path: Path
) -> None:
    done = joulemap("cost", "resnet18", "l4", *FEW, "--site", f"{name}={value}")
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (tmp_path / "joulemap.duckdb").exists()
