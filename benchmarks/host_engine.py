"""Engines on the CPU beside a plain NumPy program: CPU and wall seconds of whole processes, from recordings to files.

    python benchmarks/host_engine.py --antennas 4 --mebibytes 64 --times 5 --kernels

It makes DADA recordings of 8 bits and two polarisations, common noise in noise of their own. The plain program below
does what most people would write: whole recordings as float32, a sum over taps, a transform, rounding, and products of
matrices, with SciPy's transform where SciPy is installed. Each process runs several times, and the least is printed:
other processes take caches and cores away. ``--kernels`` runs kernels on host besides, which takes minutes.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from autotune.engines.f.filters import prototype

TAPS, HEADER, PER_HEAP, GAIN = 16, 4096, 256, 0.02


def record(folder: Path, n_antennas: int, n_bytes: int) -> list[Path]:
    """Writes a recording for each antenna."""
    rng = np.random.default_rng(5)
    sky, paths = 12 * rng.standard_normal(n_bytes // 2, np.float32), []
    for antenna in range(n_antennas):
        head = (
            f"HDR_VERSION 1.0\nHDR_SIZE {HEADER}\nTELESCOPE m{antenna:03d}\nNBIT 8\nNDIM 1\nNPOL 2\nNCHAN 1\n"
            "TSAMP 0.015625\nFREQ 1284.0\nBW 32.0\nUTC_START 2023-11-14-22:13:20\nOBS_OFFSET 0\n"
        )
        samples = np.empty((n_bytes // 2, 2), np.int8)
        for pol in range(2):
            samples[:, pol] = np.rint(sky + 20 * rng.standard_normal(len(sky), np.float32))
        paths.append(folder / f"{n_antennas}-{antenna}.dada")
        paths[-1].write_bytes(head.encode().ljust(HEADER, b"\0") + samples.tobytes())
    return paths


# ---------------------------------------------------------------------- the plain program
def plain_voltages(path: Path, n_channels: int) -> np.ndarray:
    """int8 [pol, spectrum, channel, 2]."""
    try:
        from scipy.fft import rfft
    except ModuleNotFoundError:
        from numpy.fft import rfft

    weights, step = prototype(n_channels, TAPS), 2 * n_channels
    samples = np.fromfile(path, np.int8, offset=HEADER).reshape(-1, 2).T.astype(np.float32)
    made = []
    for row in samples:
        rows = row[: len(row) // step * step].reshape(-1, step)
        n = len(rows) - TAPS + 1
        total = np.zeros((n, step), np.float32)
        for tap in range(TAPS):
            total += rows[tap : tap + n] * weights[tap]
        spectra = rfft(total, axis=1)[:, :n_channels].astype(np.complex64) * np.float32(GAIN)
        parts = np.rint(spectra.view(np.float32)).clip(-127, 127).astype(np.int8)
        made.append(parts.reshape(n, n_channels, 2))
    return np.stack(made)


def plain_visibilities(voltages: Sequence[np.ndarray], n_together: int) -> np.ndarray:
    """complex64 [dump, channel, input, input]."""
    joined = np.concatenate(voltages).astype(np.float32).view(np.complex64)[..., 0].transpose(2, 0, 1).copy()
    some = [joined[:, :, i : i + n_together] for i in range(0, joined.shape[2] - n_together + 1, n_together)]
    return np.stack([part @ part.conj().transpose(0, 2, 1) for part in some])


def plain(what: str, out: Path, n_channels: int, paths: Sequence[Path]) -> None:
    voltages = [plain_voltages(path, n_channels) for path in paths]
    np.save(out, voltages[0] if what == "channelise" else plain_visibilities(voltages, 2 * PER_HEAP))


# ---------------------------------------------------------------------- seconds of processes
def seconds(command: Sequence[str], out: Path, n_times: int) -> tuple[float, float]:
    """Returns the least CPU seconds and the least wall seconds of a process, which writes ``out``."""
    cpu, wall = [], []
    for _ in range(n_times):
        out.unlink(missing_ok=True)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall.append(time.monotonic() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(cpu), min(wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--antennas", type=int, default=4, help="those that are correlated; one is channelised")
    parser.add_argument("--mebibytes", type=int, default=64, help="of each recording")
    parser.add_argument("--channels", type=int, default=1024)
    parser.add_argument("--times", type=int, default=5, help="runs of each process")
    parser.add_argument("--kernels", action="store_true", help="run kernels on host, too, once each")
    parser.add_argument(
        "--plain", nargs="+", metavar="WORD", help="be the plain program: channelise|correlate OUT FILES"
    )
    given = parser.parse_args()
    if given.plain:
        what, out, *files = given.plain
        plain(what, Path(out), given.channels, [Path(file) for file in files])
        return
    print(f"{given.channels} channels, recordings of {given.mebibytes} MiB, {os.cpu_count()} cores")
    print("| what | antennas | CPU s | wall s |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as made:
        folder, channels = Path(made), ["--channels", str(given.channels)]
        paths = [str(path) for path in record(folder, given.antennas, given.mebibytes << 20)]
        tiny = [str(path) for path in record(folder, 1, 4 << 20)]
        engine, numpy_out, out = [sys.executable, "-m", "autotune"], folder / "x.npy", folder / "x.h5"
        host = [*channels, "--device", "host", "--out", str(out)]
        for what, files in (("channelise", paths[:1]), ("correlate", paths)):
            dumps = ["--accumulate", "2"] if what == "correlate" else []
            words = [what, *files, *host, *dumps]
            runs = {
                "plain NumPy": (
                    [sys.executable, __file__, *channels, "--plain", what, str(numpy_out), *files],
                    numpy_out,
                ),
                "autotune": ([*engine, *words], out),
                "autotune, 4 MiB": ([*engine, what, *tiny, *host, *dumps], out),
            }
            if given.kernels:
                runs["autotune --kernels-on-host"] = ([*engine, *words, "--kernels-on-host"], out)
            for name, (command, written) in runs.items():
                cpu, wall = seconds(command, written, 1 if "kernels" in name else given.times)
                print(
                    f"| {what}: {name} | {1 if '4 MiB' in name else len(files)} | {cpu:.2f} | {wall:.2f} |", flush=True
                )


if __name__ == "__main__":
    main()
