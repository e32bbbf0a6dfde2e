"""Parts of one sweep's page: parameters that the winner lacks are marked, and values that fail are named and drawn."""

from pathlib import Path

import pytest

from autotune import Config
from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.records.trial import Trial
from autotune.records.trial_log import append
from autotune.report import page as pages

from .. import outcomes
from .seen import seen

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without the 5 MB of plotly's script."""
    monkeypatch.setattr(pages, "_plotly", lambda: "const Plotly = {};")


def test_parameters_that_the_winner_lacks_come_last_and_are_marked(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path / "results")
    for i, config in enumerate(outcomes.SUBGROUP[:4]):
        trial = Trial(number=50 + i, status="measured", config=config, key=None, stamp=f"m{i}", median_s=1e-3 * (i + 1))
        append(path, trial)
    page = seen(tmp_path / "x.html", path)
    bars = page.figures[2]["data"][0]
    assert bars["y"][-1] == "SG_SIZE*" and {"ALGORITHM", "WGS"} < set(bars["y"])
    assert [colour == bars["marker"]["color"][-1] for colour in bars["marker"]["color"]] == [False] * 3 + [True]
    assert page.text.count("*: the winner does not have this parameter") == 2, "at the picture and the table"


def test_values_that_fail_are_named_and_drawn(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path / "results")
    for i in range(9):
        config = Config(ALGORITHM="register", WGS=512, PHASES=2**i)
        append(path, Trial(number=50 + i, status="wrong", config=config, key=None, stamp=f"w{i}", message="why"))
    page = seen(tmp_path / "x.html", path)
    assert "\nValues that fail\n" in page.text and "\nWGS=512\n9\nwrong\n10\n" in page.text
    assert "(red: wrong, orange: constraint, violet: definition failed, grey: others)" in page.text
    (by_wgs,) = [figure for figure in page.figures if figure["data"][0]["x"] == ["64", "128", "256", "512"]]
    assert by_wgs["data"][0]["name"] == "wrong" and by_wgs["data"][0]["y"][-1] == 100
    for i, wgs in enumerate((64, 128, 256)):
        own = [trial for trial in SweepRecord.of(SweepFolder(path)).trials if trial.config["WGS"] == wgs]
        share = 100 * sum(trial.status != "measured" for trial in own) / len(own)
        assert sum(bars["y"][i] for bars in by_wgs["data"]) == pytest.approx(share, abs=0.05)
