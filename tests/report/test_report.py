"""`autotune report`: the page has the record's numbers, loads nothing, and shows text from anywhere as text."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import plotly.graph_objects as go
import pytest

import autotune
from autotune import Config
from autotune.cli.commands import report as reporting
from autotune.cli.commands.report import report
from autotune.core.errors import UsageError
from autotune.records.folder import SweepFolder
from autotune.records.folder_lock import locked
from autotune.records.record import SweepRecord
from autotune.records.trial import Trial
from autotune.records.trial_log import append, as_row
from autotune.report import page as pages

from .. import outcomes
from ..commands import ended
from ..conftest import EXAMPLE
from ..recorded import DEFAULT, H200, TALL, WIDE, record, rewrite_about, write_verdict
from ..waiting import wait_until
from .seen import Page, seen

pytestmark = pytest.mark.quick

EVIL = '<script>alert(1)</script><img src="https://example.org/x.png" onerror="alert(2)">'
VERIFY = "autotune verify --kernel filter --problem taps=16,n_samples=4096 --config {} --device cuda"
ROOT = Path(__file__).parents[2]
DDC = ROOT / "results" / "NVIDIA_H200" / "ddc"
GRID = sorted(DDC.glob("*,n_pols=2,n_samples=33554432"))  # one number of samples


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page without the 5 MB of plotly's script, but in the test of that."""
    monkeypatch.setattr(pages, "_plotly", lambda: "const Plotly = {};")


def test_one_sweep_is_told_in_full(tmp_path: Path) -> None:
    page = seen(tmp_path / "pages" / "x.html", outcomes.sweep(tmp_path / "results"))
    for part in (
        "filter taps=16,n_samples=4096 on NVIDIA H200",
        "ALGORITHM=register,WGS=128,PHASES=4",
        "204 us (95 % interval 202 us .. 206 us), 3 launches, cold L2, GPU time",
        "49.0 % of the measured roofline",
        "against the reference at n_samples=1; the timed size; largest error 1.5e-07 of rms(reference)",
        VERIFY.format(outcomes.BEST),
        "2.000 x the default (1.960 to 2.040 from the 95 % intervals)",
        "1 other config ties with the fastest (within 0.5 %); among ties the one with fewer registers wins",
        "why wrong",
        VERIFY.format(outcomes.SUBGROUP[4]),
        "a block has a warp",
        "Where the time of the sweep went: 8 s",
    ):
        assert part in page.text, f"{part!r} is not in\n{page.text}"
    final, search, _, *by_value, spent = page.figures
    assert final["data"][0]["x"] == [204.0, 306.0, 408.0]
    assert final["data"][0]["error_x"]["array"] == pytest.approx([2.04, 3.06, 4.08])
    dots, best, failed = search["data"]
    assert dots["y"] == [400.0, 300.0, 900.0, 500.0, 200.0, 800.0] and len(failed["x"]) == 10
    assert (best["x"], best["y"]) == ([1, 2, 5, 16], [400.0, 300.0, 200.0, 200.0])
    assert spent["data"][0]["x"] == [6.0, 2.0]
    (phases,) = [figure["data"][0] for figure in by_value if {"2", "4", "8"} == set(figure["data"][0]["x"])]
    timed = dict(zip(phases["y"], phases["x"], strict=True))
    assert timed == {1e6 * s: str(config["PHASES"]) for config, s in outcomes.MEDIANS_S.items()}


def test_two_objectives_are_drawn_with_their_front(tmp_path: Path) -> None:
    goals = {"objectives": ("time", "energy"), "energy_s": 0.01, "trials": 40, "sampler": "exhaustive"}
    size, results = {"n_chan": 256}, tmp_path / "results"
    swept = autotune.sweep(EXAMPLE, problem=size, device="simulated:0", results=results, **goals)
    page = seen(tmp_path / "x.html", results)
    dots, line, star = page.figures[3]["data"]
    assert "Time and energy" in page.text and len(dots["x"]) == swept.counts["measured"]
    assert line["x"] == sorted(line["x"]) and line["y"] == sorted(line["y"], reverse=True) and len(line["x"]) > 1
    assert (star["x"], star["y"]) == (line["x"][:1], line["y"][:1])


def test_many_sweeps_are_compared(tmp_path: Path) -> None:
    for taps in (16, 32):
        outcomes.sweep(tmp_path / "results", taps=taps)
    outcomes.sweep(tmp_path / "results", taps=64, verdict=False)
    page = seen(tmp_path / "x.html", tmp_path / "results")
    assert "3 sweeps of filter on NVIDIA H200" in page.text and "n_samples=4096" in page.text
    assert f"{outcomes.BEST} (so far)" in page.text
    gains, shares = page.figures
    assert set(shares["data"][0]["y"]) == {"WGS", "PHASES"}
    assert "64 (3)" in page.text or "128 (3)" in page.text, "how often each value won"
    assert gains["data"][0]["y"] == ["taps=16", "taps=32", "taps=64"]
    assert gains["data"][0]["x"] == [2.0, 2.0, 2.0]


def test_maps_and_rooflines_of_an_h200(tmp_path: Path) -> None:
    page = seen(tmp_path / "x.html", *GRID)
    roof, heat, gains, lookup, shares = page.figures
    assert len(shares["data"][0]["x"]) == len(shares["data"][0]["y"]) > 64
    assert heat["data"][-1]["name"] == "no sweep of such a problem", "in one of the maps that the menu offers"
    assert gains["data"][0]["y"][0] == "16, 4, 8", "the reading names the fields"
    assert len(gains["data"][0]["x"]) == 64 and len(roof["data"][-1]["x"]) == 64
    assert (heat["layout"]["yaxis"]["title"]["text"], heat["data"][0]["x"][0]) == ("sample_bits", "16")
    assert [[share is None for share in row] for row in heat["data"][0]["z"]] == [[False] * 7] * 4
    others = [button["args"][0]["z"][0] for button in heat["layout"]["updatemenus"][0]["buttons"][1:]]
    assert len(others) == 2
    assert any(rows[0][-1] is None for rows in others), "no sweep has 1024 taps and decimates by 4"
    tiers = [name.partition(":")[0] for name in lookup["data"][0]["y"]]
    assert tiers == sorted(tiers, key=["nearest", "predicted", "default"].index) and "default" in tiers
    medians, to_bounds = lookup["data"][0]["x"], lookup["data"][0]["error_x"]["array"]
    assert all(median > 0 and more >= 0 for median, more in zip(medians, to_bounds, strict=True)) and max(to_bounds) > 0
    assert "bytes\nALGORITHM=tensor" in page.text, "what limits each problem"
    one = seen(tmp_path / "y.html", DDC / "taps=256,decimation=16,sample_bits=10,n_pols=2,n_samples=33554432")
    assert "Grey lines (float32) do not apply" in one.text and "the slope: moving the bytes takes" in one.text
    assert [line["name"] for line in one.figures[2]["data"][:3]] == [
        "float32 (does not apply)",
        "tensor cores, float16",
        "tensor cores, int8",
    ]
    for figure in (*page.figures, *one.figures):
        go.Figure(without_newer(figure))  # raises where plotly knows no such member


def without_newer(figure: dict[str, Any]) -> dict[str, Any]:
    """The figure without what plotly before 6.3 does not know, which its script ignores."""
    text = re.sub(r'"minorloglabels": "\w+",? ?', "", json.dumps(figure))
    return json.loads(text.replace(", }", "}"))  # type: ignore[no-any-return]


def test_problems_without_arithmetic_are_named_beside_the_roofline(tmp_path: Path) -> None:
    of_ddc = DDC / "taps=128,decimation=8,sample_bits=10,n_pols=2,n_samples=33554432"
    some = sorted((DDC.parent / "dequantize").glob("*,n_times=32768"))
    page = seen(tmp_path / "x.html", *some, of_ddc)
    told = f"Not drawn: problems of dequantize ({len(some)}) that have no arithmetic; only bytes limit them"
    assert told in page.text
    assert "they reach 92." in page.text and not any(line["name"] == "dequantize" for line in page.figures[0]["data"])


def test_two_sets_of_records_are_compared(tmp_path: Path) -> None:
    for name, factor in (("before", 1.0), ("after", 1.5)):
        for n_chan in (16, 32):
            changed = factor if n_chan == 32 else 1.0
            times = {WIDE: 2.0 * changed, TALL: 4.0, DEFAULT: 5.0}
            path = record(tmp_path / name, H200, times, n_chan=n_chan, compiler=f"NVRTC {name}")
            finalists = [as_row(trial) for trial in SweepRecord.of(SweepFolder(path)).measured]
            write_verdict(path, {"winner": finalists[0], "finalists": finalists})
        rewrite_about(path, compiler=f"NVRTC {name}")
    append(path, Trial(number=1, status="wrong", config=TALL, key=None, stamp="", message="off by one"))
    record(tmp_path / "after", H200, {WIDE: 1.0}, n_chan=64)
    report([tmp_path / "after"], tmp_path / "x.html", before=[tmp_path / "before"])
    page = Page((tmp_path / "x.html").read_text())
    for part in (
        "Before and after: 2 problems of detect on NVIDIA H200",
        "2 in both: 1 same, 0 faster, 1 slower; 2 with the same winner",
        "detect n_time=100,n_chan=64 on NVIDIA H200",
        "NVRTC before",
        "NVRTC after",
        "off by one",
    ):
        assert part in page.text, f"{part!r} is not in\n{page.text}"
    (changes,) = page.figures
    band, same, slower = changes["data"]
    assert band["y"] == ["n_chan=32", "n_chan=16"], "those that became slower come first"
    assert (same["x"], same["y"], slower["x"], slower["y"]) == ([0.0], ["n_chan=16"], [50.0], ["n_chan=32"])
    alone = [tmp_path / name / path.relative_to(tmp_path / "after") for name in ("before", "after")]
    report(alone[1:], tmp_path / "y.html", before=alone[:1])
    changes, configs = Page((tmp_path / "y.html").read_text()).figures
    assert (configs["data"][1]["x"], configs["data"][1]["y"]) == ([2.0, 5.0], [3.0, 5.0])
    with pytest.raises(UsageError, match="share no problem"):
        report([outcomes.sweep(tmp_path / "other")], tmp_path / "z.html", before=alone[:1])


def test_text_of_a_record_stays_text(tmp_path: Path) -> None:
    path = outcomes.sweep(tmp_path / "results", compiler=EVIL, refused={EVIL: 3})
    bad = Config(ALGORITHM=EVIL, WGS=64)
    failed = Trial(number=90, status="noisy", config=bad, key=None, stamp="s90", message=EVIL)
    append(path, failed)
    append(path, replace(failed, number=91, status="measured", config=Config(ALGORITHM=EVIL, WGS=32), median_s=1e-3))
    (path / "verdict.json").unlink()
    page = seen(tmp_path / "x.html", path)
    html = (tmp_path / "x.html").read_text()
    assert "<script>alert" not in html and "<img" not in html
    assert page.text.count("<script>alert(1)</script>") >= 3, "it is shown"
    assert not re.search(r"<(script|img)", "".join(map(json.dumps, page.figures))), "plotly's labels hold no HTML"
    assert "&lt;script&gt;alert(1)" in json.dumps(page.figures)
    other = outcomes.sweep(tmp_path / "after", compiler="another", default={"ALGORITHM": EVIL})
    report([other], tmp_path / "y.html", before=[path])
    html = (tmp_path / "y.html").read_text()
    assert "<script>alert" not in html and "<img" not in html
    compared = Page(html)
    assert EVIL in compared.text, "the compiler before"
    assert not re.search(r"<(script|img)", "".join(map(json.dumps, compared.figures)))


def test_a_page_loads_nothing_and_runs_what_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    html = pages.page([SweepRecord.of(SweepFolder(outcomes.sweep(tmp_path)))])
    page, style = Page(html), html.partition("</style>")[0]
    loading = [(tag, name) for tag, own in page.tags for name in own if name in ("src", "href", "srcset", "action")]
    assert loading == [] and "@import" not in style and "url(" not in style
    policy = next(own["content"] or "" for tag, own in page.tags if own.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "http" not in policy
    runs = [script for script in page.scripts if not script.startswith("[")]
    assert len(runs) == 2 and "plotly.js v" in runs[0]
    assert 'plotlyServerURL: ""' in runs[1] and "showSendToCloud: false" in runs[1], "no button uploads a chart"
    assert all(f"'{pages._digest(script)}'" in policy for script in runs)


def test_the_page_is_written_anew_while_a_sweep_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "LOOKS_EVERY_S", 0.01)
    monkeypatch.setattr(reporting, "QUIET_S", 0.1)
    out, told, pages_seen = tmp_path / "x.html", [], []
    monkeypatch.setattr(reporting, "note", told.append)

    def sweep() -> None:
        wait_until(lambda: bool(told))
        made = outcomes.sweep(tmp_path / "made", verdict=False)
        path = tmp_path / "results" / made.relative_to(tmp_path / "made")
        with locked(made, told.append):
            (tmp_path / "made").rename(tmp_path / "results")
            wait_until(lambda: out.exists())
            pages_seen.append(out.read_text())
            append(path, Trial(number=77, status="wrong", config=Config(WGS=8), key=None, stamp="", message="belated"))
            wait_until(lambda: "2 wrong" in out.read_text())
            pages_seen.append(out.read_text())

    running = Thread(target=sweep)
    running.start()
    report([tmp_path / "results"], out, watch=True)
    running.join()
    assert [line.partition(":")[0] for line in told] == [
        "waiting",
        f"writing {out} while a sweep runs",
        f"wrote {out}",
    ]
    assert ["location.reload" in html for html in (*pages_seen, out.read_text())] == [True, True, False]
    assert ["2 wrong" in html for html in (*pages_seen, out.read_text())] == [False, True, True]


def test_ctrl_c_ends_a_watch_with_a_page_that_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = outcomes.sweep(tmp_path / "results", verdict=False), tmp_path / "x.html"

    def interrupted(_: float) -> None:
        assert "location.reload" in out.read_text()
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting.time, "sleep", interrupted)
    code, told = ended(["report", str(path), "--out", str(out), "--watch"], capsys, monkeypatch)
    assert code == 130 and told.splitlines()[1:] == [
        "autotune: stopped by Ctrl-C; no page is half written; run the same command again"
    ]
    assert "location.reload" not in out.read_text()


def test_what_goes_wrong_is_told_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "x.html"
    code, told = ended(["report", str(tmp_path), "--out", str(out)], capsys, monkeypatch)
    assert code == 2 and told.count("\n") == 1 and str(tmp_path) in told and not out.exists()
    path = outcomes.sweep(tmp_path / "results")
    code, told = ended(["report", str(path), "--out", str(tmp_path)], capsys, monkeypatch)
    assert code == 2 and "is a folder; a report is one file" in told
    for name in ("report.pdf", "report"):
        code, told = ended(["report", str(path), "--out", str(tmp_path / name)], capsys, monkeypatch)
        assert code == 2 and f"--out {tmp_path / 'report.html'}. To make a PDF" in told
        assert not (tmp_path / name).exists()
    out.write_text("as it was")

    def broken(*_: object) -> str:
        raise UsageError("no page")

    monkeypatch.setattr(pages, "_page_text", broken)
    with pytest.raises(UsageError):
        report([path], out)
    assert out.read_text() == "as it was" and not list(tmp_path.glob(".x.html*"))


def test_without_plotly_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(UsageError, match=r"need plotly, which is not installed: pip install plotly, or .*\[report\]"):
        pages.page([])
