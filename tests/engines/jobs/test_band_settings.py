"""By how much delays may differ: as much as they do while the samples last, or what is kept of those without an end."""

import pytest

from autotune import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.jobs.band_settings import Bands, Narrow
from autotune.engines.streams.samples import SampleInfo

NARROW = Narrow(0.25e6, 8, 64)
DELAYS = [DelayModel(Piece(0, 100.0)), DelayModel(Piece(0, -200.0, rate=1e-2))]  # 300, and less by 1e-2 a sample


def differences(n_samples: int | None, bands: Bands) -> list[int]:
    info = SampleInfo(10, 2, 1e6, 256, n_samples)
    made = bands.settings(info, 1 << 16, DELAYS)
    return [getattr(each, "band", each).max_delay_diff for each in made]


@pytest.mark.quick
def test_samples_without_an_end_have_a_million() -> None:
    assert differences(None, Bands(64)) == [1 << 20]
    assert differences(None, Bands(64, narrow=(NARROW,), with_whole=True)) == [1 << 20, 1 << 17]


def test_samples_with_an_end_have_what_they_need() -> None:
    assert differences(1000, Bands(64)) == [1 << 12], "the least"
    (difference,) = differences(1_000_000, Bands(64))
    assert 9_900 <= difference <= 10_001, "-200 to 9800, and one for what is rounded"


def test_what_a_user_says_holds() -> None:
    assert Bands(n_channels=64) == Bands(64), "its name in 0.2"  # type: ignore[call-arg]
    assert differences(None, Bands(64, max_delay_diff=40)) == differences(10**6, Bands(64, max_delay_diff=40)) == [40]
    with pytest.raises(UsageError, match="max_delay_diff=-1 must be an integer from 0 to 67108864"):
        Bands(64, max_delay_diff=-1)
