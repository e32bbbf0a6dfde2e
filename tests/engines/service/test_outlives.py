"""What outlives an engine and its process: gains, delays, and the time of a digitiser that was synchronised anew."""

import json
import signal
import time
from fractions import Fraction
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.engines.corrections.delays import BEFORE, DelayModel, Piece
from autotune.engines.jobs.running import Running
from autotune.engines.network.receiver import JumpedError
from autotune.engines.service.f_service import FService, f_service_settings
from autotune.engines.service.x_service import XService, x_service_settings
from autotune.engines.streams.times import exact_time, time_text

from .air import RATE_HZ, Air, Process, ended
from .in_process import untimed

ZERO_S = 1_700_000_000
MEASURED = "samples have an rms of"
F = (
    'antenna = "m0"\nsample_rate_hz = 1e6\npacket = 1024\nchunk = 65536\n{}from.listen = "127.0.0.1"\n'
    '[[to]]\nchannels = 64\nfile = "v.h5"\n'
)
NARROW = "[[to]]\nchannels = 64\nfile = 'n.h5'\nnarrow = { centre_hz = 2e5, decimation = 4, taps = 32 }\n"


def service(folder: Path, more: str = f"sync_time_unix = {ZERO_S}\n", end: str = NARROW) -> tuple[FService, list[str]]:
    told, path = list[str](), folder / "f.toml"
    path.write_text(F.format(more) + end)
    return FService(f_service_settings(path), Running(device="host"), lambda line: told.append(untimed(line))), told


def held(serving: FService, time: int) -> list[list[float]]:
    """The sizes of both polarisations' gains of each output at a time."""
    return [np.abs(output.gains.at(time)[1][0]).tolist() for output in serving._outputs]


def pieces(serving: FService) -> list[tuple[Piece, ...]]:
    return [model.pieces for output in serving._outputs for model in output.delays]


def test_gains_and_delays_that_were_set_are_there_in_the_next_process(tmp_path: Path) -> None:
    before, told = service(tmp_path)
    assert told == []
    values = np.random.default_rng(1).normal(size=(64, 2, 2)).astype(np.float32).view(np.complex64)[..., 0]
    before.set_gains(0, 4096, values)
    before.set_gains(0, 8192, 0.5)
    before.add_delay(0, 1, Piece(0, 3.25, 1e-9, 0.1, 1e-8))
    before.add_delay(1, 1, Piece(5000, 7.0))
    again, told = service(tmp_path)
    assert told == [f"{tmp_path}/f.kept.json says what was measured, set or noticed before; remove it to begin without"]
    assert pieces(again) == pieces(before)
    assert pieces(again)[1][1:] == (Piece(0, 3.25, 1e-9, 0.1, 1e-8),)
    assert pieces(again)[3] == DelayModel(Piece(5000, 7.0)).about(0.2 - 0.25).pieces, "as this band's middle has it"
    for at in (0, 4096, 8191, 8192):
        assert np.array_equal(again._outputs[0].gains.at(at)[1], before._outputs[0].gains.at(at)[1])


@pytest.mark.parametrize("is_known", [True, False])
def test_what_was_set_holds_from_the_same_moment_on_when_the_time_begins_anew(tmp_path: Path, is_known: bool) -> None:
    """The digitiser's time is 1000 s when it is synchronised anew: 0 is then 1002 s later than it was, and 2 s pass."""
    serving, told = service(tmp_path, f"sync_time_unix = {ZERO_S}\n" if is_known else "")
    for start, size in ((0, 0.25), (999_000_000, 0.5), (1_003_000_000, 2.0)):
        serving.set_gains(0, start, size)
    serving.add_delay(0, 0, Piece(1_003_000_000, 3.0))
    serving.follow(JumpedError(0, samples=-1_000_000_000, seconds=2.0))
    again, _ = service(tmp_path, f"sync_time_unix = {ZERO_S}\n" if is_known else "")
    for each in (serving, again):
        assert [held(each, at)[0] for at in (0, 999_999, 1_000_000)] == [[0.5, 0.5], [0.5, 0.5], [2.0, 2.0]]
        assert pieces(each)[0][1:] == (Piece(1_000_000, 3.0),)
        assert each.sync_time_unix == (ZERO_S + 1002 if is_known else None)
    assert (
        told
        == [
            "the digitiser was synchronised anew: sync_time_unix is 1700001002 from here on, by this machine's clock; "
            "the file may say it better"
        ]
        * is_known
    )


def test_a_step_of_a_clock_and_a_late_start_change_nothing(tmp_path: Path) -> None:
    serving, told = service(tmp_path)
    serving.set_gains(0, 1000, 0.5)
    serving.follow(JumpedError(2_000_000, samples=-5_000_000, seconds=2.0))
    serving.follow(JumpedError(2_000_000_000, samples=1_000_000_000, seconds=999.0))
    assert held(serving, 1000)[0] == [0.5, 0.5] and held(serving, 999)[0] == [1.0, 1.0]
    assert serving.sync_time_unix == ZERO_S and told == []


def test_a_file_of_other_settings_or_a_damaged_one_is_told_and_not_used(tmp_path: Path) -> None:
    serving, _ = service(tmp_path)
    serving.set_gains(0, BEFORE, 0.5)
    for more in ("sync_time_unix = 5\n", f"sync_time_unix = {ZERO_S}\nsample_bits = 8\n"):
        other, (line,) = service(tmp_path, more)
        assert line.endswith("f.kept.json belongs to other settings: it is not used") and held(other, 0)[0] == [1, 1]
    kept = tmp_path / "f.kept.json"
    whole = kept.read_bytes()
    for wrong in (whole[:-9], whole.replace(b"0.5", b"0.6", 1), b"{}", b"[1]", b"\x00\xff"):
        kept.write_bytes(wrong)
        other, (line,) = service(tmp_path)
        assert "f.kept.json is not used: " in line and "\n" not in line and held(other, 0)[0] == [1, 1]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "f.kept.json").mkdir()
    serving, told = service(tmp_path)
    serving.set_gains(0, BEFORE, 0.5)
    assert "f.kept.json is not used" in told[0] and "cannot be written: Is a directory" in told[1]
    assert held(serving, 0)[0] == [0.5, 0.5]


def test_an_x_engine_notices_it_too(tmp_path: Path) -> None:
    def made() -> XService:
        path = tmp_path / "x.toml"
        path.write_text(
            f'antennas = ["m0"]\nchannels = 8\nsample_rate_hz = 1e6\naccumulate = 4\nsync_time_unix = {ZERO_S}\n'
            'from.listen = "127.0.0.1"\nto.file = "x.h5"\n'
        )
        return XService(x_service_settings(path), Running(device="host"), lambda line: None)

    serving = made()
    serving.follow(JumpedError(0, samples=-1_000_000_000, seconds=2.0))
    for each in (serving, made()):
        (antenna,) = map(each._now_of, each._info.antennas)
        assert antenna.sync_time_unix == ZERO_S + 1002


# ---------------------------------------------------------------------- processes that are begun anew
def digitiser(air: Air, at_s: int, rms: float) -> Process:
    """A digitiser whose time was 0 ``at_s`` seconds before now, and whose noise has this rms."""
    packets = round(at_s * RATE_HZ / 1024)
    path = air.write_dsim(0, first=packets * 1024, zero_s=time.time() + 1 - at_s)
    path.write_text(path.read_text().replace("noise(0.1,", f"noise({rms},").replace("noise(0.2,", f"noise({rms},"))
    return air.start("dsim", path)


def gains_of(f: Process) -> list[list[float]]:
    found: list[list[float]] = f.counts()["made"][0]["gains"]
    return found


@pytest.mark.parametrize(("end", "n_engines"), [(signal.SIGKILL, 2), (signal.SIGTERM, 3)])
def test_gains_that_were_measured_and_the_new_time_outlive_engines_and_processes(
    tmp_path: Path, end: signal.Signals, n_engines: int
) -> None:
    """A digitiser whose time is 2000 s ends, and says so or not; one begins at 0, ten times louder; then the F-engine.

    Where its end was said, an engine waits for the next time without knowing it.
    """
    more = f"sync_time_unix = {time.time() - 2000:.3f}\n"
    with ended(Air(tmp_path, "udp", 1, n_samples=None, speed=1.0, gains=None, f_more=more)) as air:
        config = tmp_path / "f0.toml"
        config.write_text(config.read_text() + 'file = "v.h5"\n')
        f = air.f(0).waits_for("heaps are received at")
        first = digitiser(air, 2000, 0.01)
        f.waits_for(MEASURED).makes(64)
        first.send(end)
        first.ends()
        second = digitiser(air, 0, 0.1)
        f.waits_for("the digitiser was synchronised anew").makes(64)
        f.send(signal.SIGTERM)
        assert f.ends() == 0 and f.counts()["engines"] == n_engines
        again = air.f(0).waits_for("heaps are received at").makes(64)
        again.send(signal.SIGTERM)
        second.send(signal.SIGTERM)
        assert again.ends() == 0 and second.ends() == 0
    assert sum(MEASURED in line for line in (*f.lines, *again.lines)) == 1
    assert gains_of(f) == gains_of(again) and any("f0.kept.json says" in line for line in again.lines)
    zeros, loudest = list[Fraction](), list[int]()
    for path in sorted(tmp_path.glob("v*.h5"), key=lambda path: path.stat().st_mtime_ns):
        with h5py.File(path) as file:
            zero = file["samples"].attrs["sync_time_unix"]
            zeros.append(exact_time(zero.decode() if isinstance(zero, bytes) else float(zero)))
            loudest.append(int(np.abs(file["voltages"][:].astype(int)).max()))
    assert loudest[0] < 127 and loudest[1:] == [127, 127], "gains are those of the first"
    assert abs(zeros[1] - zeros[0] - 2000) < 60 and zeros[1] == zeros[2]
    content = json.loads((tmp_path / "f0.kept.json").read_bytes())
    assert content["sync_time_unix"] == time_text(zeros[1])
