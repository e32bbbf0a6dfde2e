"""When a digitiser sends its first sample, and which time that sample has."""

from fractions import Fraction
from pathlib import Path

import pytest

from autotune.engines.service import dsim_service as module
from autotune.engines.service.dsim_service import Dsim, dsim_settings

RATE_HZ, PACKET = 1e6, 4096


def first(folder: Path, told: str) -> tuple[int, float]:
    """The time of the first sample, in samples, and when it is due, on a monotonic clock that is at 0."""
    path = folder / "dsim.toml"
    path.write_text(
        f'sample_rate_hz = {RATE_HZ}\nsignals = ["noise(0.1, seed=1)"]\n{told}[to]\nendpoints = ["127.0.0.1"]\n'
    )
    digitiser = Dsim(dsim_settings(path), print)
    settings = digitiser._at_now()
    return settings.first_timestamp, digitiser._began(settings)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is 1000 s, and does not go on."""
    monkeypatch.setattr(module, "time", Clock)


class Clock:
    time, monotonic = staticmethod(lambda: 1000.0), staticmethod(lambda: 0.0)


@pytest.mark.parametrize(
    ("told", "timestamp", "due_s"),
    [
        ("", 0, 0),
        ("first_timestamp = 8192\n", 8192, 0),
        ("sync_time_unix = 1003\nfirst_timestamp = 0\n", 0, 3),
        ("sync_time_unix = 999\nfirst_timestamp = 4096000\n", 4096000, 3.096),
        ("sync_time_unix = 900\nfirst_timestamp = 4096\n", 4096, 0),
    ],
)
def test_a_sample_whose_time_is_given_waits_for_it(tmp_path: Path, told: str, timestamp: int, due_s: float) -> None:
    assert first(tmp_path, told) == (timestamp, pytest.approx(due_s))


def test_without_a_time_of_its_own_the_first_sample_has_the_clocks(tmp_path: Path) -> None:
    timestamp, due_s = first(tmp_path, "sync_time_unix = 900\n")
    assert timestamp % PACKET == 0 and due_s == pytest.approx(float(Fraction(timestamp) / 1000000) - 100)
    assert 0 < due_s < 0.3
