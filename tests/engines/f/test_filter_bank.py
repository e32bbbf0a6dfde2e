"""All filter banks make the same voltages, and the one that is known to be faster is used."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Config, Device, UsageError
from autotune.emit.writer import write_package
from autotune.engines.corrections.delays import Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f import filter_bank as filter_bank_module
from autotune.engines.f.chain_bank import ChainBank, stages
from autotune.engines.f.channelise_bank import ChanneliseBank, fields_of
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filter_bank import filter_bank
from autotune.engines.f.filters import prototype
from autotune.engines.f.numpy_bank import NumpyBank
from autotune.engines.f.voltage_buffers import BandSettings, BankParts
from autotune.engines.kernels.choice import AUTO, CHAIN, CHANNELISE, Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.bay import Bay
from autotune.engines.streams.in_memory import ArraySource, KeptVoltages
from autotune.source.registry import load_kernel

from ...recorded import A100, H100, H200, HOST, record
from .test_band import HEAP, C
from .test_engine import INFO, N_PACKETS, SETTINGS, engine, output, packed


def test_all_make_the_same_voltages() -> None:
    """All are float32, which rounds otherwise in few places; counters are the same, but for those. In the end delays
    grow so fast that a chunk has more spectra than its samples have steps.
    """
    received = np.ones((2, N_PACKETS), bool)
    received[0, 33] = False
    sinks, counted = {}, {}
    for bank in (CHAIN, CHANNELISE, AUTO):
        sinks[bank] = KeptVoltages()
        made = output(sinks[bank], replace(SETTINGS, heaps_per_batch=8))
        made.delays[0].add(Piece(INFO.first_timestamp + 9000, 7.6, 3e-3, 0.2, 1e-5))
        for model in made.delays:
            model.add(Piece(INFO.first_timestamp + 15000, 30.0, 0.45))
        made.gains.set(INFO.first_timestamp + 7000, 0.3 - 0.1j)
        (counted[bank],) = engine(ArraySource(packed(), INFO, received), made, bank=bank).run()
    one = sinks[CHAIN]
    for bank in (CHANNELISE, AUTO):
        other = sinks[bank]
        assert len(one.timestamps) > 15 and np.array_equal(one.timestamps, other.timestamps)
        off = np.abs(one.voltages.astype(int) - other.voltages)
        assert off.max() <= 1 and np.count_nonzero(off) <= 1e-3 * off.size
        assert one.saturated.any() and np.abs(one.saturated.astype(int) - other.saturated).max() <= 1
        assert np.array_equal(counted[CHAIN].power, counted[bank].power)
        assert counted[CHAIN].power_samples == counted[bank].power_samples


class Counting(HostBackend):
    """Counts launches by kernels' names, and bytes of arrays; launches do nothing."""

    def __init__(self, device: Device | None = None) -> None:
        super().__init__()
        self.device = device or self.device
        self.launched = Counter[str]()
        self.n_bytes = 0

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        made = super().empty(shape, dtype)
        made.fill(0)
        self.n_bytes += made.nbytes
        return made

    def launcher(self, kernel: Any, problem: Any, config: Config, source: str | None = None) -> Any:
        return lambda *given: self.launched.update([kernel.name])


def launches(bank: str, rate: float) -> Counter[str]:
    backend, made = Counting(), output(KeptVoltages())
    made.delays[0].add(Piece(INFO.first_timestamp, 3.0, rate))
    kernels = Kernels(backend, lambda line: None, filter_bank=bank)
    FEngine(backend, ArraySource(packed(), INFO), [made], N_PACKETS, kernels).run()
    return backend.launched


def test_a_change_of_coarse_delay_cuts_no_launch_of_channelise() -> None:
    steady, drifting = launches(CHANNELISE, 0.0), launches(CHANNELISE, 3e-3)
    assert steady == drifting and steady.keys() == {"channelise"}
    assert launches(CHAIN, 3e-3)["pfb_fir"] >= drifting["channelise"] + 50, "there are changes"


# ---------------------------------------------------------------------- which one
def chosen(
    wanted: str = AUTO, device: Device = H200, settings: BandSettings = SETTINGS, **known: Any
) -> tuple[str, str, int]:
    """The filter bank of two antennas, what is told of it, and the bytes that one takes on the device."""
    backend, told = Counting(device), list[str]()
    bay = Bay(backend, Kernels(backend, told.append, filter_bank=wanted, **known))
    gains = Gains(settings.n_channels, 2)
    for _ in range(2):
        made = filter_bank(BankParts(bay, INFO, settings, gains, backend.stream(), 1))
    (line,) = [line for line in told if line.startswith("filter bank")]
    names = {ChainBank: CHAIN, ChanneliseBank: CHANNELISE, NumpyBank: AUTO}
    return names[type(made)], line, backend.n_bytes // 2


def recorded(results: Path, name: str, median_us: float) -> None:
    """A sweep on an H200 in which the default took so long for a batch."""
    fields = {CHANNELISE: fields_of(INFO, SETTINGS), **stages(INFO, SETTINGS)}[name]
    kernel = load_kernel(name)
    problem = kernel.problem_type(**fields)
    default = kernel.default_config(problem, H200)
    record(results, H200, {default: median_us}, problem=asdict(problem), default=default, definition=name)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times of transforms to come, in seconds; each is taken once."""
    assert filter_bank_module.transform_s(Counting(), INFO, SETTINGS) > 0
    times: list[float] = []
    monkeypatch.setattr(filter_bank_module, "transform_s", lambda *given: times.pop())
    return times


def test_auto_is_channelise_where_it_is_expected_to_be_faster(tmp_path: Path, timed: list[float]) -> None:
    assert chosen()[:2] == (
        CHAIN,
        "filter bank of 64 channels: pfb_fir, FFT and postproc; no time of channelise is known here",
    )
    for pfb_fir_us, fft_us, expected in ((5.0, 1.0, CHAIN), (5.0, 21.0, CHANNELISE), (30.0, None, CHANNELISE)):
        results = tmp_path / f"{pfb_fir_us}_{fft_us}"
        recorded(results, "channelise", 11.0)
        assert "no time of pfb_fir and postproc is known here" in chosen(results=results)[1]
        recorded(results, "postproc", 4.0)
        recorded(results, "pfb_fir", pfb_fir_us)
        both: list[dict[str, Any]] = [
            {"results": results},
            {"package": write_package([results], tmp_path / f"tuned_{pfb_fir_us}_{fft_us}".replace(".", "_"))},
        ]
        for known in both:
            timed[:] = [] if fft_us is None else [1e-6 * fft_us]
            bank, line, _ = chosen(**known)
            fft = "plus an FFT" if fft_us is None else f"FFT {fft_us:.0f} us (timed now)"
            assert bank == expected and line.endswith(
                f"; a batch takes channelise 11 us (measured here), the chain {4 + pfb_fir_us + (fft_us or 0):.0f} us: "
                f"pfb_fir {pfb_fir_us:.0f} us (measured here), postproc 4 us (measured here), {fft}"
            )
            assert not timed, "the transform is timed where it decides, once"
        assert chosen(results=results, device=HOST)[1].endswith(" channels: NumPy; as always on host")
        bank, line, _ = chosen(results=results, device=HOST, kernels_on_host=True)
        assert bank == CHAIN and line.endswith("; as always with kernels on host")


@pytest.mark.parametrize(("channelise_us", "expected"), [(11.0, CHANNELISE), (18.0, CHAIN)])
def test_times_of_other_gpus_and_other_sizes_decide_where_none_are_of_this_one(
    tmp_path: Path, timed: list[float], channelise_us: float, expected: str
) -> None:
    """The FFT takes 4 us: what the records of a GPU of the architecture say is scaled alike."""
    for name, time_us in (("channelise", channelise_us), ("postproc", 4.0), ("pfb_fir", 6.0)):
        recorded(tmp_path / "results", name, time_us)
    timed[:] = [4e-6]
    bank, line, _ = chosen(results=tmp_path / "results", device=H100)
    assert bank == expected and line.count("(scaled from another GPU)") == 3
    more = replace(SETTINGS, heaps_per_batch=2 * SETTINGS.heaps_per_batch)
    timed[:] = [4e-6]
    bank, line, _ = chosen(results=tmp_path / "results", settings=more)
    assert bank == expected and line.count("(predicted)") == 3
    assert chosen(results=tmp_path / "results", device=A100)[1].endswith("; no time of channelise is known here")


def test_what_is_asked_for_is_used_where_it_can_be() -> None:
    bank, line, n_bytes = chosen(CHANNELISE)
    assert (bank, line) == (CHANNELISE, "filter bank of 64 channels: channelise; as asked for")
    bank, line, more = chosen(CHAIN)
    assert bank == CHAIN and line.endswith("; as asked for")
    n_filtered = 2 * SETTINGS.heaps_per_batch * HEAP * 2 * C
    assert more - n_bytes > 8 * n_filtered - 4096, "filtered samples and spectra are not there"
    few = replace(SETTINGS, n_channels=96, weights=prototype(96, 4))
    bank, line, _ = chosen(CHANNELISE, settings=few)
    assert bank == CHAIN and "96 channels: pfb_fir, FFT and postproc; channelise cannot be used: " in line
    assert "the channels are a power of two from 64 to 65536" in line and "\n" not in line
    with pytest.raises(UsageError, match="filter_bank='both' must be one of auto, chain, channelise"):
        chosen("both")
