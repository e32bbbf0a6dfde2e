"""A browser draws the page of a report: with the record's numbers, without a word of complaint, and asks for nothing.

These tests run where a Chromium is found.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord
from autotune.report import page as pages

from .. import outcomes
from ..chromium import CHROMIUM, Chromium, chromium

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: apt-get install chromium")

DDC = Path(__file__).parents[2] / "results" / "NVIDIA_H200" / "ddc"
TRACES = """[...document.querySelectorAll(".picture")].map((place) => place._fullData.map(
  ({type, x, y, z}) => ({type, x: x && [...x], y: y && [...y], z})))"""
N_POINTS = '[...document.querySelectorAll(".picture")].map((place) => place.querySelectorAll(".point").length)'
DRAWS_NOTHING = "const Plotly = {newPlot() {}};"  # in place of 5 MB
CUT = """[...document.querySelectorAll(".picture")].flatMap((place) => {
  const own = place.getBoundingClientRect();
  return [...place.querySelectorAll("svg text")].filter((text) => {
    const box = text.getBoundingClientRect();
    const isOutside = box.left < own.left - 1 || box.right > own.right + 1 || box.bottom > own.bottom + 1;
    return box.width > 0 && isOutside;
  }).map((text) => `${place.id}: ${text.textContent}`);
})"""
LEGEND_UNDER_BUTTONS = """[...document.querySelectorAll(".picture")].flatMap((place) => {
  const bar = place.querySelector(".modebar")?.getBoundingClientRect();
  return [...place.querySelectorAll(".legendtext")].filter((text) => {
    const box = text.getBoundingClientRect();
    return bar && box.right > bar.left && box.left < bar.right && box.top < bar.bottom && box.bottom > bar.top;
  }).map((text) => `${place.id}: ${text.textContent}`);
})"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def clean(browser: Chromium) -> Iterator[Chromium]:
    """The browser, whose pages complain of nothing and ask for nothing but themselves."""
    browser.requests.clear()
    browser.complaints.clear()
    yield browser
    assert browser.complaints == []
    asked = {url.partition(":")[0] for url in browser.requests}
    assert asked <= {"file", "data"} and all(url.endswith(".html") for url in browser.requests if url[:5] == "file:")


def records(*paths: Path) -> list[SweepRecord]:
    return [SweepRecord.of(SweepFolder(path)) for path in paths]


def written(path: Path, html: str) -> Path:
    path.write_text(html)
    return path


def test_one_sweep_is_drawn(clean: Chromium, tmp_path: Path) -> None:
    clean.open(written(tmp_path / "x.html", pages.page(records(outcomes.sweep(tmp_path / "results")))))
    final, search, *_, spent = clean.ask(TRACES)
    assert final[0]["x"] == [204, 306, 408]
    assert search[0]["y"] == [400, 300, 900, 500, 200, 800] and len(search[2]["x"]) == 10
    assert spent[0]["x"] == [6, 2]
    drawn = clean.ask(N_POINTS)
    assert (drawn[0], drawn[1], drawn[-1]) == (3, 16, 2)
    assert not clean.ask(TOO_WIDE)


def test_many_sweeps_fit_a_phone_and_the_menu_chooses_the_fields(clean: Chromium, tmp_path: Path) -> None:
    sweeps = records(*sorted(DDC.glob("taps=[12][25][68],*")))
    clean.open(written(tmp_path / "x.html", pages.page(sweeps)), width=400)
    assert not clean.ask(TOO_WIDE)
    heat = 'document.getElementById("picture-1")'
    shown = f"[{heat}.layout.xaxis.title.text, {heat}.layout.yaxis.title.text]"
    assert clean.ask(shown) == ["decimation", "sample_bits"]
    assert clean.ask(f"{heat}._fullData[0].z.flat().filter((share) => share > 0 && share <= 100).length") == 16
    click = "dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    clean.ask(f"{heat}.querySelector('.updatemenu-header').{click}")
    chosen = clean.ask(f"{heat}.querySelectorAll('.updatemenu-dropdown-button text')[1].textContent")
    clean.ask(f"{heat}.querySelectorAll('.updatemenu-dropdown-button')[1].{click}")
    assert chosen == "taps over sample_bits"
    clean.wait_for(lambda: bool(clean.ask(shown) == ["sample_bits", "taps"]))


def test_no_text_of_a_picture_is_cut_and_buttons_cover_no_legend(clean: Chromium, tmp_path: Path) -> None:
    sweeps = records(*sorted(DDC.glob("taps=128,*")), *sorted((DDC.parent / "channelise").glob("*")))
    many = written(tmp_path / "many.html", pages.page(sweeps))
    one = written(tmp_path / "one.html", pages.page(sweeps[:1]))
    for page, width in ((many, 500), (one, 500), (one, 760)):  # buttons are shown from 640 on
        clean.open(page, width=width)
        assert clean.ask(CUT) == [] and clean.ask(LEGEND_UNDER_BUTTONS) == []


def test_a_page_that_renews_itself_keeps_its_place(
    clean: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_plotly", lambda: DRAWS_NOTHING)
    page = tmp_path / "x.html"
    clean.open(written(page, at_once(pages.page(records(outcomes.sweep(tmp_path / "a", verdict=False)), renews=True))))
    clean.ask("scrollTo(0, 432)")
    n_loaded = clean.n_loaded
    written(page, pages.page(records(outcomes.sweep(tmp_path / "b"))))  # it has ended
    clean.wait_for_load(n_loaded)
    clean.wait_for(lambda: bool(clean.ask("document.body.textContent.includes('The final round')")))
    assert clean.ask("scrollY") == 432
    n_loaded = clean.n_loaded
    clean.ask("new Promise((done) => setTimeout(done, 700))")
    assert clean.n_loaded == n_loaded, "the last page stays"


def at_once(html: str) -> str:
    """The page, which renews itself after a third of a second."""
    script = (pages.HERE / "renew.js").read_text()
    faster = script.replace("5000", "300")
    assert html.count(script) == 1 and faster != script
    return html.replace(script, faster).replace(pages._digest(script), pages._digest(faster))


def test_what_a_page_must_not_do_is_noticed(browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_plotly", lambda: DRAWS_NOTHING)
    html = pages.page(records(outcomes.sweep(tmp_path / "results")))
    browser.open(written(tmp_path / "x.html", html.replace("</body>", "<script>alert(1)</script></body>")))
    browser.wait_for(lambda: any("Content Security Policy" in text for text in browser.complaints))
    lax = html.replace("img-src data: blob:", "img-src *")
    browser.open(written(tmp_path / "y.html", lax.replace("</body>", "<img src='https://example.org/x.png'></body>")))
    browser.wait_for(lambda: "https://example.org/x.png" in browser.requests)
