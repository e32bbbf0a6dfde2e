"""What notebooks show of sweeps, configs and choices: few lines, text as text, and the main pictures as one figure."""

import sys
from pathlib import Path

import pytest

from autotune import Config, UsageError
from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.records.trial import Trial
from autotune.records.trial_log import append
from autotune.report.notebook import figure
from autotune.runtime.lookup import Choice
from autotune.sweep.run import Sweep

from .. import outcomes
from ..recorded import created

pytestmark = pytest.mark.quick

EVIL = "<script>alert(1)</script>\nand a line"
CONFIG = Config(ALGORITHM=EVIL, WGS=64)


def sweep(path: Path) -> Sweep:
    trial = Trial(
        number=0, status="measured", config=CONFIG, key=None, stamp="", median_s=2e-4, samples_s=(2e-4,) * 999
    )
    default = Trial(number=1, status="measured", config=Config(WGS=32), key=None, stamp="", median_s=3e-4)
    return Sweep(path, trial, default, (), {"measured": 2, "compile_failed": 1}, {}, "gp", {}, interrupted=True)


def choice() -> Choice:
    return Choice("filter", EVIL, {"taps": 16}, None, CONFIG, "default", "nothing known", "0123456789ab")


def test_few_lines_tell_a_sweep_a_config_and_a_choice(tmp_path: Path) -> None:
    told = repr(sweep(tmp_path / EVIL))
    assert "200 us" in told and "1.500 x the default" in told
    assert "2 measured, 1 compile failed; interrupted" in told
    assert len(told.splitlines()) <= 10 and len(told) < 1000
    assert repr(choice()) == str(choice()) and len(repr(choice()).splitlines()) <= 10
    assert repr(Config(WGS=64, STORE="direct")) == "Config(WGS=64,STORE=direct)"


def test_none_is_told_where_nothing_was_correct(tmp_path: Path) -> None:
    told = repr(Sweep(tmp_path, None, None, (), {"wrong": 3}, {}, "gp"))
    assert told.count("no correct result") == 2 and "speed-up" not in told


@pytest.mark.parametrize("shown", [sweep(Path(EVIL)), CONFIG, choice()], ids=lambda value: type(value).__name__)
def test_text_stays_text(shown: Sweep | Config | Choice) -> None:
    html = shown._repr_html_()
    assert "<script" not in html and "&lt;script&gt;alert(1)" in html
    assert html.startswith(("<table>", "<pre>")) and "64" in html


def test_the_main_pictures_are_one_figure(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path / "results")
    final, search, *_ = sweep(path).plot().data
    assert list(final.x) == [204.0, 306.0, 408.0]
    assert list(search.y) == [400.0, 300.0, 900.0, 500.0, 200.0, 800.0]
    assert not any("*" in note.text for note in sweep(path).plot().layout.annotations)
    assert (final.xaxis, search.xaxis, search.legend) == ("x", "x2", "legend2")
    named = Trial(number=91, status="measured", config=CONFIG, key=None, stamp="", median_s=1e-3)
    append(path, named)
    assert "<script" not in sweep(path).plot().to_json().replace("\\u003c", "<")


def test_a_star_is_explained_beside_the_picture(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path / "results")
    for i, config in enumerate(outcomes.SUBGROUP[:4]):
        append(path, Trial(number=50 + i, status="measured", config=config, key=None, stamp=f"m{i}", median_s=i + 1.0))
    shown = sweep(path).plot()
    assert any("*: the winner lacks it" in note.text for note in shown.layout.annotations)
    assert any(name.endswith("*") for bars in shown.data if bars.type == "bar" for name in bars.y)


def test_what_cannot_be_plotted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {"kernel": "filter", "problem": {}, "device": {"name": "x", "kind": "cuda", "arch": "sm_90"}, "default": {}}
    empty = SweepRecord.of(created(tmp_path / "x", about))
    with pytest.raises(UsageError, match="no config was measured"):
        figure(empty)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(UsageError, match="pip install plotly"):
        figure(SweepRecord.of(SweepFolder(outcomes.sweep(tmp_path))))
