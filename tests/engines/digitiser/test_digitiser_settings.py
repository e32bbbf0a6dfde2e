"""The configuration is read whole or refused in one line; an engine gets the samples that would be sent."""

import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.digitiser.digitised_signal import DigitisedSignal
from autotune.engines.digitiser.digitiser_settings import DigitiserSettings, digitiser_settings
from autotune.engines.digitiser.digitiser_source import DigitiserSource
from autotune.engines.digitiser.packet_faults import Faults
from autotune.engines.digitiser.repeated_signal import RepeatedSignal
from autotune.engines.streams.in_memory import ArraySource, KeptVoltages

from ..f.test_band import PACKET
from ..f.test_engine import engine, output

pytestmark = pytest.mark.quick

PATH = Path("dsim.toml")
LEAST: dict[str, Any] = {"sample_rate_hz": 1e6, "signals": ["noise(0.1, seed=1)"]}


EXAMPLE = """
sample_rate_hz = 1712e6
sample_bits = 10
packet = 4096
signals = ["tone(232.3e6, 0.2) + sky", "delay(tone(232.3e6, 0.2), 1.5e-9) + sky"]
dither = 1
period = 16777216
sync_time_unix = "1700000000.0"
names.sky = "noise(0.05, seed=7)"
faults.lost = 0.01
"""


def test_an_example_is_read() -> None:
    settings = digitiser_settings(PATH, tomllib.loads(EXAMPLE))
    assert settings == DigitiserSettings(
        sample_rate_hz=1712e6,
        signals=("tone(232.3e6, 0.2) + sky", "delay(tone(232.3e6, 0.2), 1.5e-9) + sky"),
        names={"sky": "noise(0.05, seed=7)"},
        dither=1,
        period=1 << 24,
        sync_time_unix=Fraction(1700000000),
        faults=Faults(lost=0.01),
    )
    info = settings.info(antenna="m000")
    assert (info.n_pols, info.sample_bits, info.packet, info.n_samples) == (2, 10, 4096, None)
    assert (info.antenna, info.sync_time_unix, info.sample_rate_hz) == ("m000", 1700000000, 1712e6)


def test_defaults() -> None:
    settings = digitiser_settings(PATH, LEAST)
    assert settings == DigitiserSettings(1e6, ("noise(0.1, seed=1)",), 10, 4096, {}, None, None, None, 0, Faults())
    assert isinstance(settings.packets(), DigitisedSignal)
    told: list[str] = []
    periodic = replace(settings, period=8192, signals=("tone(1000, 0.1)",)).packets(told.append)
    assert isinstance(periodic, RepeatedSignal) and len(told) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sample_rate_hz": 0}, "it sample_rate_hz is 0, must be more than 0"),
        ({"sample_rate_hz": float("nan")}, "it sample_rate_hz is nan, must be a number"),
        ({"sample_bits": 17}, "it sample_bits is 17, must be an integer, 2 to 16"),
        ({"packet": 0}, "it packet is 0, must be an integer, 1 to 65536"),
        ({"packet": 1001}, "packet=1001 samples of 10 bits are not whole bytes; give a multiple of 8"),
        ({"signals": "tone(1, 1)"}, "it signals is 'tone(1, 1)', must be a list"),
        ({"signals": [1]}, "it signals is 1, must be text"),
        ({"signals": []}, "there are 0 signals; a digitiser has one for each of 1 or 2 polarisations"),
        ({"signals": ["constant(0)"] * 3}, "there are 3 signals"),
        ({"signals": ["constant(0)", "tone(1)"]}, "signals[1] 'tone(1)': 'tone(1)' must be tone(frequency_hz, amp"),
        ({"signals": ["os.getcwd()"]}, "signals[0] 'os.getcwd()': 'os.getcwd()' is not of the language"),
        ({"names": {"sky": 1}}, "it names sky is 1, must be text"),
        ({"names": {"sky": "1 +"}}, "names.sky '1 +' is not an expression"),
        ({"names": {"tone": "1"}}, "names: 'tone' cannot be a name; take 40 letters"),
        ({"dither": True}, "it dither is True, must be an integer, 0 to 9223372036854775807"),
        ({"period": 1 << 29}, "it period is 536870912, must be an integer, 1 to 268435456"),
        ({"period": 5000}, "period=5000 is not a multiple of packet=4096; give 8192"),
        ({"sync_time_unix": "now"}, "it sync_time_unix is 'now', must be seconds since 1970"),
        ({"first_timestamp": 1 << 62}, "it first_timestamp is 4611686018427387904, must be an integer"),
        (
            {"first_timestamp": (1 << 60) + 5},
            f"first_timestamp={(1 << 60) + 5} is not a multiple of packet=4096; give {1 << 60}",
        ),
        ({"faults": {"lost": 1.5}}, "it faults lost is 1.5, must be 0 to 1"),
        ({"faults": {"seed": -1}}, "it faults seed is -1, must be an integer"),
        ({"faults": {"late": 0.1}}, "it faults has 'late', which nothing here knows"),
        ({"rate": 1}, "it has 'rate', which nothing here knows"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(change: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError) as caught:
        digitiser_settings(PATH, LEAST | change)
    message = str(caught.value)
    assert message.startswith(f"dsim.toml: {why}") and "\n" not in message, message


@pytest.mark.parametrize("name", ["sample_rate_hz", "signals"])
def test_what_is_needed_is_told(name: str) -> None:
    with pytest.raises(UsageError, match=f"dsim.toml: dig lacks {name}"):
        digitiser_settings(PATH, {key: value for key, value in LEAST.items() if key != name}, "dig")


@pytest.mark.parametrize(("name", "value"), [("sample_rate_hz", 0.0), ("sample_rate_hz", float("nan")), ("packet", 0)])
def test_what_code_says_is_checked_too(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{name}="):
        replace(SETTINGS, **{name: value})  # type: ignore[arg-type]


# ---------------------------------------------------------------------- as a source
SETTINGS = DigitiserSettings(
    sample_rate_hz=1e6,
    signals=("tone(123456.7, 0.1) + noise(0.05, seed=1)", "tone(123456.7, 0.1) + noise(0.05, seed=2)"),
    packet=PACKET,
    first_timestamp=((1 << 48) // PACKET - 40) * PACKET,
    faults=Faults(lost=0.02, repeated=0.1, exchanged=0.1, seed=1),
)
N_PACKETS = 96


@pytest.mark.parametrize("period", [None, 32 * PACKET])
def test_an_engine_takes_what_would_be_sent(period: int | None) -> None:
    settings = replace(SETTINGS, period=period)
    packets, info = settings.packets(), settings.info(N_PACKETS * PACKET + 1)
    packed, _ = packets.read(settings.first_timestamp, N_PACKETS * PACKET)
    sent = [settings.faults.sends(0, N_PACKETS, pol, is_last=True).numbers for pol in range(2)]
    received = np.array([np.isin(np.arange(N_PACKETS), numbers) for numbers in sent])
    assert 0 < np.count_nonzero(~received) < 12
    found = []
    for source in (DigitiserSource(packets, info, settings.faults), ArraySource(packed, info, received)):
        sink = KeptVoltages()
        engine(source, output(sink)).run()
        found.append(sink)
    np.testing.assert_array_equal(found[0].timestamps, found[1].timestamps)
    np.testing.assert_array_equal(found[0].voltages, found[1].voltages)
    assert len(found[0].timestamps) > 5 and found[0].voltages.any()


def test_a_source_ends_with_whole_packets_or_never() -> None:
    out = np.zeros((2, 7 * PACKET * 10 // 8), np.uint8)
    packets, first = SETTINGS.packets(), SETTINGS.first_timestamp
    source = DigitiserSource(packets, SETTINGS.info(10 * PACKET + 3))
    assert source.info.n_samples == 10 * PACKET and not source.is_live
    chunks = [source.read(out) for _ in range(4)]
    assert [chunk and (chunk.time, chunk.received.shape) for chunk in chunks] == [
        (first, (2, 7)),
        (first + 7 * PACKET, (2, 3)),
        None,
        None,
    ]
    endless = DigitiserSource(packets, SETTINGS.info())
    assert [chunk.time - first for _ in range(3) if (chunk := endless.read(out))] == [0, 7 * PACKET, 14 * PACKET]
    np.testing.assert_array_equal(out, packets.read(first + 14 * PACKET, 7 * PACKET)[0])
    source.close()


def test_a_source_of_other_packets_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"n_pols, sample_bits, packet\) = \(2, 10, \d+\), and info says \(2, 8, \d+\)"
    ):
        DigitiserSource(SETTINGS.packets(), replace(SETTINGS.info(), sample_bits=8))
    with pytest.raises(UsageError, match="samples are read into"):
        DigitiserSource(SETTINGS.packets(), SETTINGS.info()).read(np.zeros((2, 7), np.uint8))
