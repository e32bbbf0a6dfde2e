"""Delays in TOML: round trips, what the tables mean, and what is refused."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.engines.corrections.delays import BEFORE, LATEST, DelayModel, Piece
from autotune.engines.files.delay_file import read_delays, read_phase_centre, write_delays
from autotune.engines.files.phase_centre_text import phase_centre_of_text, phase_centre_text
from autotune.engines.streams.phase_centre import PhaseCentre

from .common import refused

numbers = st.floats(-1e9, 1e9)
pieces = st.builds(
    Piece, st.integers(BEFORE, LATEST - 1), numbers, st.floats(-0.9, 0.9), numbers, st.floats(-1e-3, 1e-3)
)
models = st.lists(pieces, max_size=4).map(lambda some: DelayModel(*sorted(some, key=lambda piece: piece.start)))
names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)


@given(st.dictionaries(names, st.tuples(models, models), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(tmp_path_factory, delays: dict[str, tuple[DelayModel, DelayModel]]) -> None:
    path = tmp_path_factory.mktemp("delays") / "delays.toml"
    write_delays(path, delays)
    found = read_delays(path)
    assert found.keys() == delays.keys()
    for name, models in delays.items():
        assert [model.pieces for model in found[name]] == [model.pieces for model in models]


def test_what_tables_mean(tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(
        '[[delay]]\nantenna = "a"\nstart = 5\ndelay = 3\n'
        '[[delay]]\nantenna = "a"\npol = 1\nstart = 9\nrate = 1e-9\nphase = -0.5\nphase_rate = 2e-6\n'
        "[[delay]]\nstart = 7\nphase = 1\n"
    )
    found = read_delays(tmp_path / "d.toml")
    before = Piece(BEFORE)
    assert found.keys() == {"a", "*"}
    assert found["a"][0].pieces == (before, Piece(5, 3.0))
    assert found["a"][1].pieces == (before, Piece(5, 3.0), Piece(9, 0.0, 1e-9, -0.5, 2e-6))
    assert found["*"][0].pieces == found["*"][1].pieces == (before, Piece(7, phase=1.0))


def test_polarisations_that_are_alike_share_tables(tmp_path: Path) -> None:
    piece = Piece(5, 3.0)
    write_delays(tmp_path / "one.toml", {"a": [DelayModel(piece)]})
    write_delays(tmp_path / "two.toml", {"a": [DelayModel(piece), DelayModel(piece)]})
    assert (tmp_path / "one.toml").read_text() == (tmp_path / "two.toml").read_text()
    assert "pol" not in (tmp_path / "one.toml").read_text()
    with refused("one.toml", "it exists"):
        write_delays(tmp_path / "one.toml", {})
    with refused("there/d.toml", "No such file"):
        write_delays(tmp_path / "there" / "d.toml", {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("delay = 1", ["it delay is 1, must be a list"]),
        ("", ["it lacks delay"]),
        ("[[delay]]\nstart = 1\n[[delay]]\ndelay = 1", ["[[delay]] 2 lacks start"]),
        ("[[delay]]\nstart = 1.5", ["[[delay]] 1 start is 1.5", "an integer"]),
        ("[[delay]]\nstart = 0\npol = 2", ["[[delay]] 1 pol is 2", "0 to 1"]),
        ("[[delay]]\nstart = 0\nrate = 1", ["rate is 1", "between -1 and 1"]),
        ("[[delay]]\nstart = 0\ndelay = nan", ["delay is nan"]),
        ("[[delay]]\nstart = 0\nphase = inf", ["phase is inf"]),
        ("[[delay]]\nstart = 0\ndelay = 1e30", ["delay is 1e+30"]),
        ("[[delay]]\nstart = 0\ndelays = 1", ["'delays', which nothing here knows"]),
        ("[[delay]]\nstart = 4611686018427387904", ["start is 4611686018427387904"]),
        ('[[delay]]\nstart = 0\nantenna = "\\u001b[2J"', ["antenna is"]),
        (
            "[[delay]]\nstart = 9\n[[delay]]\nstart = 9\npol = 1",
            ["[[delay]] 2 starts at sample 9", "pol 1", "order of time"],
        ),
        ("[[delay", ["it is not TOML"]),
        ("delay = [1]", ["[[delay]] 1 is 1, must be an object"]),
        ("#" * (1 << 26) + "#", ["longer than 67108864 bytes"]),
    ],
    ids=range(16),
)
def test_what_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "d.toml").write_text(text)
    with refused("d.toml: ", *words):
        read_delays(tmp_path / "d.toml")
    with refused("none.toml", "No such file"):
        read_delays(tmp_path / "none.toml")


PLACES = [
    PhaseCentre(12.5, right_ascension_deg=187.25, name="3C 273"),
    PhaseCentre(-30.0, hour_angle_deg=-20.5, longitude_deg=21.4, time_unix=Fraction(17 * 10**9 + 1, 10)),
]


@pytest.mark.parametrize("centre", PLACES)
def test_a_phase_centre_that_is_written_is_read(tmp_path: Path, centre: PhaseCentre) -> None:
    write_delays(tmp_path / "x.toml", {"*": (DelayModel(),)}, centre)
    assert read_phase_centre(tmp_path / "x.toml") == centre == phase_centre_of_text(phase_centre_text(centre))
    write_delays(tmp_path / "y.toml", {"*": (DelayModel(),)})
    assert read_phase_centre(tmp_path / "y.toml") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("declination_deg = 3", "has a declination alone"),
        ("right_ascension_deg = 3", "declination_deg"),
        ("declination_deg = 93\nright_ascension_deg = 3", "must be -90 to 90"),
        ("declination_deg = 9\nright_ascension_deg = 3\nhour_angle_deg = 1", "has hour_angle_deg, right_ascension_deg"),
        ("declination_deg = 9\nhour_angle_deg = 1", "has hour_angle_deg, must have right_ascension_deg (ICRS)"),
        ("declination_deg = 9\nra = 1", "ra"),
    ],
)
def test_a_wrong_phase_centre_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(f"delay = []\n[phase_centre]\n{text}\n")
    with refused("x.toml: [phase_centre]", words):
        read_phase_centre(tmp_path / "x.toml")
