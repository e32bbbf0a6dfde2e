"""What engines choose from records, and what each alternative takes on this device, measured there and then.

    python benchmarks/engine_choices.py --results results --json choices.json
    python benchmarks/engine_choices.py --results results --without "NVIDIA H100 80GB HBM3" --json choices.json

Filter banks: 8 and 10 bits, 16 taps, two polarisations, a batch of 2^26 samples, as engines take them from files; the
chain is the sum of its kernels and its FFT. Slices: 64 channels, 8 bits, a chunk of 32 batches of 256 spectra; a dump
takes 8 launches of correlate, a chunk each, and one of accumulate. Every kernel runs the config that engines choose for
it. A time is the median of launches whose inputs are not in the L2 cache. The last is a table: what was chosen and why,
the times, and that of the choice over the least.

``--without``: leaves that device's records out, as on a card that nobody recorded.
"""

import argparse
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from autotune.cli.tables import print_table
from autotune.core.units import seconds_text
from autotune.engines.f.chain_bank import stages
from autotune.engines.f.channelise_bank import fields_of
from autotune.engines.f.filter_bank import transform_s, uses_channelise
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.jobs.running import Running
from autotune.engines.kernels.choice import CHAIN, CHANNELISE, Kernels
from autotune.engines.machine.backend import Backend, DeviceArray
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.x.slices import allowed_slices, slices_of
from autotune.engines.x.x_settings import XSettings, accumulate_fields, correlate_fields
from autotune.records.folder import find_sweeps
from autotune.source.registry import load_kernel

CHANNELS = tuple(1 << log_n for log_n in range(10, 17))
ANTENNAS = (4, 16, 32, 64, 110, 128, 256)
TAPS, HEAP, RATE_HZ, PACKET = 16, 256, 1712e6, 4096
X_CHANNELS, PER_CHUNK, CHUNKS_PER_DUMP = 64, 32, 8
FLUSHED_BYTES = 1 << 28  # that are written between launches: more than any L2 cache holds, and while a launch is given
POOL = (1 << 22) + 3  # random values, which arrays repeat


@dataclass(frozen=True)
class Compared:
    """A choice of an engine, and the seconds of each alternative by its name: measured, and expected before."""

    what: str
    chosen: str
    why: str
    measured: Mapping[str, float]
    expected: Mapping[str, float]

    @property
    def over_least(self) -> float:
        """Returns the time of the choice over the least."""
        return self.measured[self.chosen] / min(self.measured.values())


class Stopwatch:
    """Times launches of kernels by the configs that engines choose.

    Args:
        repeats: launches that count; two go before.
    """

    def __init__(self, backend: Backend, kernels: Kernels, repeats: int) -> None:
        self._backend, self._kernels, self._repeats = backend, kernels, repeats
        self._stream, self._rng = backend.stream(), np.random.default_rng(0)
        self._flushed = backend.empty((FLUSHED_BYTES if backend.device.kind != "host" else 1,), np.uint8)
        self._known: dict[tuple[str, str], float] = {}

    def seconds(self, name: str, **fields: Any) -> float:
        """Returns the median of launches of a kernel; the same fields are timed once."""
        asked = name, repr(sorted(fields.items()))
        if asked not in self._known:
            launch, problem = self._kernels.launcher(name, **fields)
            specs = load_kernel(name).arrays(problem)
            arrays = {array: self._filled(spec.shape, spec.dtype) for array, spec in specs.items()}
            if name == CHANNELISE:
                self._one_after_the_other(arrays["offsets"], problem.step)
            self._known[asked] = self._median(lambda: launch(problem, arrays, {}, self._stream))
        return self._known[asked]

    def _median(self, launch: Callable[[], None]) -> float:
        found = []
        for _ in range(2 + self._repeats):
            self._stream.zero(self._flushed)
            before = self._stream.record(is_timed=True)
            launch()
            after = self._stream.record(is_timed=True)
            after.wait()
            found.append(after.seconds_since(before))
        return median(found[2:])

    def _one_after_the_other(self, offsets: DeviceArray, step: int) -> None:
        """Let each spectrum begin a step after the one before, as in an engine."""
        starts = self._backend.pinned(offsets.shape, np.int64)
        starts[...] = step * np.arange(len(starts))[:, np.newaxis]
        self._stream.copy_in(offsets, starts)
        self._backend.finish()

    def _filled(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """Returns an array of random values; of zeros, where they may be places, counts or sums."""
        array = self._backend.empty(shape, dtype)
        if dtype.itemsize == 8 and dtype.kind in "iu":
            self._stream.zero(array)
            return array
        flat, n = array.reshape(-1), min(prod(shape), POOL)
        pool = self._backend.pinned((n,), dtype)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            pool[...] = self._rng.integers(info.min // 2, info.max // 2, n, dtype)
        else:
            parts = self._rng.standard_normal(n * (1 + (dtype.kind == "c")), np.float32)
            pool[...] = parts.view(np.complex64) if dtype.kind == "c" else parts
        for first in range(0, prod(shape), n):
            some = flat[first : first + n]
            self._stream.copy_in(some, pool[: len(some)])
        self._backend.finish()
        return array


def filter_banks(
    watch: Stopwatch, backend: Backend, kernels: Kernels, channels: int, bits: int, log_chunk: int
) -> Compared:
    """Compares both filter banks."""
    info, length = SampleInfo(bits, 2, RATE_HZ, PACKET), 2 * channels
    weights = np.zeros((TAPS, length), np.float32)
    settings = BandSettings(channels, weights, 8, HEAP, max(1, (1 << log_chunk) // (length * HEAP)))
    is_one, why = uses_channelise(backend, kernels, info, settings)
    of_one, of_chain = {CHANNELISE: fields_of(info, settings)}, stages(info, settings)
    fft = transform_s(backend, info, settings)
    measured = {CHAIN: fft + sum(watch.seconds(name, **fields) for name, fields in of_chain.items())}
    measured[CHANNELISE] = watch.seconds(CHANNELISE, **of_one[CHANNELISE])
    expected = {}
    for bank, of, more in ((CHAIN, of_chain, fft), (CHANNELISE, of_one, 0.0)):
        times = [kernels.expected_time(name, **fields) for name, fields in of.items()]
        if known := [time.seconds for time in times if time is not None]:
            expected[bank] = sum(known) + more
    return Compared(f"{channels} channels, {bits} bits", CHANNELISE if is_one else CHAIN, why, measured, expected)


def slice_numbers(
    watch: Stopwatch, backend: Backend, kernels: Kernels, told: list[str], antennas: int, channels: int
) -> Compared:
    """Compares numbers of slices; ``told``: what ``kernels`` tells."""
    settings = XSettings(antennas, channels, HEAP, 2 * channels * HEAP, PER_CHUNK * CHUNKS_PER_DUMP, PER_CHUNK)
    chosen, why = slices_of(settings, kernels, backend.device.kind), told[-1]
    measured, expected = {}, {}
    for n in allowed_slices(settings):
        of = {"correlate": correlate_fields(settings, n), "accumulate": accumulate_fields(settings, n)}
        times = {name: kernels.expected_time(name, **fields) for name, fields in of.items()}
        found = {name: watch.seconds(name, **fields) for name, fields in of.items()}
        measured[str(n)] = CHUNKS_PER_DUMP * found["correlate"] + found["accumulate"]
        if (each := times["correlate"]) is not None and (dump := times["accumulate"]) is not None:
            expected[str(n)] = CHUNKS_PER_DUMP * each.seconds + dump.seconds
    return Compared(f"{antennas} antennas", str(chosen), why, measured, expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="recorded sweeps")
    parser.add_argument("--without", help="a device whose records are left out")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--channels", type=int, nargs="*", default=CHANNELS)
    parser.add_argument("--bits", type=int, nargs="*", default=(10, 8))
    parser.add_argument("--antennas", type=int, nargs="*", default=ANTENNAS)
    parser.add_argument("--x-channels", type=int, default=X_CHANNELS)
    parser.add_argument("--log-chunk", type=int, default=26, help="samples of a batch, as a power of two")
    parser.add_argument("--repeats", type=int, default=7, help="launches of each kernel")
    parser.add_argument("--json", type=Path, help="a file for all of it")
    given = parser.parse_args()
    logging.getLogger("autotune").setLevel(logging.ERROR)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = given.results
        if results is not None and given.without is not None:
            results = without(results, given.without, Path(folder))
        backend = Running(device=given.device).backend
        told: list[str] = []
        kernels = Kernels(backend, told.append, results=results)
        rows = list(compared(given, backend, kernels, told, began))
    if given.json is not None:
        content = {"device": backend.device.name, "without": given.without, "told": told}
        given.json.write_text(
            json.dumps({**content, "choices": [{**vars(row), "over_least": row.over_least} for row in rows]}, indent=1)
            + "\n"
        )
    columns = "what", "chosen", "over the least", "measured", "expected", "why"
    print(f"{backend.device.name}, {time.monotonic() - began:.0f} s")
    print_table(columns, [cells(row) for row in rows])


def compared(
    given: argparse.Namespace, backend: Backend, kernels: Kernels, told: list[str], began: float
) -> Iterator[Compared]:
    """Yields each choice, and tells it when it was compared."""
    watch = Stopwatch(backend, kernels, given.repeats)
    for bits in given.bits:
        for channels in given.channels:
            yield filter_banks(watch, backend, kernels, channels, bits, given.log_chunk)
            print(f"{time.monotonic() - began:.0f} s: {channels} channels, {bits} bits", flush=True)
    for antennas in given.antennas:
        yield slice_numbers(watch, backend, kernels, told, antennas, given.x_channels)
        print(f"{time.monotonic() - began:.0f} s: {antennas} antennas", flush=True)


def cells(row: Compared) -> tuple[str, ...]:
    measured, expected = (
        ", ".join(f"{name} {seconds_text(time)}" for name, time in times.items())
        for times in (row.measured, row.expected)
    )
    return row.what, row.chosen, f"{row.over_least:.3f}", measured, expected or "unknown", row.why


def without(results: Path, device: str, folder: Path) -> Path:
    """Returns a copy of the sweeps of all other devices, in ``folder``."""
    for sweep in find_sweeps(results):
        if sweep.about().device.name != device:
            copy = shutil.copytree(sweep.path, folder / sweep.path.relative_to(results))
            for shared in sweep.path.parent.glob("*.json"):  # what the sweeps of a kernel have in common
                shutil.copy(shared, copy.parent)
    return folder


if __name__ == "__main__":
    main()
