"""Values of a site: where they are found, which one holds, how they are checked, and what answers say of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import Run
from joulemap import Workspace
from joulemap.ask.candidate import find_payment, pay_as
from joulemap.ask.site import KNOWN, read_site
from joulemap.domain.settings import Settings
from joulemap.system.config import find_config
from joulemap.system.errors import ExitCode, JoulemapError, UsageError

FILE = """# ours
[site]
grid = "de"
electricity = "0.31 USD/kWh"

[site.price-per-hour]
l4 = "0.40 USD/h"

[habits]
limit = 2
"""

NO_FILE = {"JOULEMAP_SITE_FILE": os.devnull}


def test_the_nearest_file_above_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    (tmp_path / "joulemap.toml").write_text(FILE)
    assert find_config({}).path == "../../joulemap.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert read_site(variables={}).region == "de"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.joulemap.site]\ngrid = 'fr'\n")
    assert read_site(variables={}).region == "fr"
    assert read_site(variables={"JOULEMAP_SITE_FILE": str(tmp_path / "joulemap.toml")}).region == "de"
    assert read_site([str(tmp_path / "joulemap.toml")], variables={}).region == "de"


def test_an_option_replaces_the_environment_and_that_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "joulemap.toml").write_text(FILE)
    variables = {"JOULEMAP_GRID": "fr", "JOULEMAP_PRICE_PER_HOUR": "l4=0.5USD/h,t4=0.2USD/h"}
    site = read_site(["price-per-hour.t4=0.3USD/h"], variables=variables)
    assert {one.hardware: (one.usd_per_hour, one.is_asked) for one in site.prices} == {
        "l4": (0.5, False),
        "t4": (0.3, True),
    }
    assert {name: one["from"] for name, one in site.stated.items()} == {
        "grid": "JOULEMAP_GRID",
        "electricity": "joulemap.toml",
        "price-per-hour": "JOULEMAP_PRICE_PER_HOUR, --site",
    }
    assert site.usd_per_kwh == 0.31


def test_what_always_holds_never_decides_how_one_pays() -> None:
    """A price of a file leaves the usual way of paying; a limit of the question beats the `pay` of a file."""
    standing = Settings(site=read_site(variables={**NO_FILE, "JOULEMAP_PURCHASE_PRICE": "l4=9USD"}))
    asked = Settings(site=read_site(["purchase-price.l4=9USD"], variables=NO_FILE))
    assert (find_payment(standing), find_payment(asked)) == ("rented", "bought")
    for variables, given, way in (({"JOULEMAP_PAY": "rented"}, [], "bought"), ({}, ["pay=rented"], "rented")):
        settings = Settings(site=read_site(given, variables={**NO_FILE, **variables}))
        assert find_payment(pay_as(settings, "bought")) == way


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[site]\n\nelectricty = "1 USD/kWh"\n', "line 3: unknown value 'electricty'; did you mean electricity"),
        ("[site]\nbusy_hours = 5\n", "line 2: unknown value 'busy_hours'; did you mean busy-hours?"),
        ("[site]\nelectricity = 0.3\n", "line 2: electricity: '0.3' has no unit: write 0.3USD/kWh"),
        ('[site]\nelectricity = "0.3 EUR/kWh"\n', "line 2: electricity: '0.3 EUR/kWh' is in EUR/kWh"),
        ("[site]\npue = 0.9\n", "line 2: pue: pue is 0.9, expected at least 1"),
        ("[site]\npue = [1]\n", 'line 2: pue: write pue = "1.2"'),
        ('[site]\ngrid = "atlantis"\n', "line 2: grid: unknown grid region"),
        ("[site.owned]\nl4 = 1\nt4 = 1.5\n", "line 3: owned: '1.5' is not a whole number"),
        ('[site.price-per-hour]\nt4 = "1 USD/h"\nl44 = "1 USD/h"\n', "line 3: price-per-hour: unknown hardware 'l44'"),
        ('[site]\nhost = "ryzn"\n', "line 2: host: unknown hardware 'ryzn'"),
        ("[site]\nowned.l44 = 2\n", "line 2: owned: unknown hardware 'l44'"),
        ("[sites]\n", "line 1: unknown table 'sites'; did you mean site"),
        ("pue = 1.1\n", "line 1: pue stands outside of a table"),
        ("[site\n", "not valid TOML"),
    ],
)
def test_a_wrong_line_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "joulemap.toml").write_text(text)
    with pytest.raises(JoulemapError) as caught:
        read_site([str(tmp_path / "joulemap.toml")], variables={})
    assert message in str(caught.value)


def test_every_example_can_be_read() -> None:
    for name, known in KNOWN.items():
        if name != "price-file":
            text = f"{name}.l4={known.example}" if known.is_table else f"{name}={known.example}"
            assert name in read_site([text], variables=NO_FILE).stated
    with pytest.raises(UsageError, match="given twice"):
        read_site(["pue=1.2", "pue=1.3"], variables=NO_FILE)


@pytest.mark.slow
def test_an_answer_names_the_values_it_depends_on(workspace: Workspace) -> None:
    site = read_site(["electricity=0.31USD/kWh", "pue=1.5"], variables=NO_FILE)
    paid = workspace.cost("conv_block", site=site, hardware=("l4", "t4"), precision="int8", batch=1)
    assert "site: --site (electricity 0.31USD/kWh, pue 1.5)" in paid.document().sure
    assert paid.data()["site"]["pue"] == {"value": "1.5", "unit": "", "from": "--site"}
    ranked = workspace.compare("conv_block", site=site, hardware=("l4", "t4"), precision="int8", batch=1)
    assert "site" not in ranked.data()
    hosted = workspace.compare("conv_block", site=read_site(["host=epyc_9654"], variables=NO_FILE), hardware=("l4",))
    assert {*hosted.data()["site"]} == {"host"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cost", "mlp", "--pue", "1.2"), "no --pue here: write --site pue=1.2, or pue below [site] in joulemap.toml"),
        (("cost", "mlp", "--owned=l4=8"), "no --owned here: write --site owned=l4=8, or [site.owned] in joulemap.toml"),
        (("cost", "mlp", "--device-only"), "no --device-only here: write --site host=none"),
        (("sql", "SELECT 1", "--raw"), "no --raw here: set JOULEMAP_RAW=true, or raw below [habits] in joulemap.toml"),
        (("db", "info", "--wait", "3"), "no --wait here: set JOULEMAP_WAIT=3, or wait below [habits] in joulemap.toml"),
    ],
)
def test_an_option_that_is_a_value_of_the_place_says_where_it_stands(
    words: tuple[str, ...], told: str, joulemap: Run
) -> None:
    done = joulemap(*words)
    assert (done.returncode, done.stderr) == (ExitCode.USAGE, f"joulemap: {told}\n")


def test_habits_are_defaults_of_options(joulemap: Run, tmp_path: Path, database: Path) -> None:
    path = tmp_path / "here.toml"
    path.write_text("[habits]\nlimit = 1\nenvelope = true\n")
    given = {"JOULEMAP_SITE_FILE": str(path), "JOULEMAP_DB": str(database)}
    rows = "SELECT range AS a FROM range(3)"
    assert "2 more rows" in joulemap("sql", rows, variables=given).stdout
    assert "more rows" not in joulemap("sql", rows, "--limit", "3", variables=given).stdout
    assert joulemap("sql", rows, "-f", "json", variables=given).stdout.startswith("{")
    path.write_text("[habits]\nwait = -1\n")
    done = joulemap("db", "info", variables=given)
    assert (done.returncode, done.stderr) == (
        ExitCode.USAGE,
        f"joulemap: {path}, line 2: wait: -1 s, expected at least 0\n",
    )
