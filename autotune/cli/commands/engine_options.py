"""The options, the progress line and the messages that `channelise` and `correlate` share."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import UsageError
from ...engines.f.filters import WINDOWS
from ...engines.files import formats
from ...engines.files.formats.interface import either
from ...engines.jobs import Narrow, Running
from ...engines.jobs.band_settings import MOST_TAPS
from ...engines.jobs.running import Report
from ..console import ProgressLine, ProgressText, note

TapsOption = Annotated[
    int, typer.Option("--taps", min=1, max=MOST_TAPS, help="Taps of the filter bank: how many spectra a filter spans.")
]
WindowOption = Annotated[str, typer.Option("--window", help=f"Window of the filter: {', '.join(WINDOWS)}.")]
BitsOption = Annotated[
    int, typer.Option("--bits", help="Bits of a voltage's real part and of its imaginary part, each: 8 or 4.")
]
SpectraOption = Annotated[
    int,
    typer.Option(
        "--spectra-per-heap",
        min=1,
        max=1 << 20,
        help="Spectra in a heap. A heap is written as a whole.",
    ),
]
DelaysOption = Annotated[Path | None, typer.Option("--delays", help="TOML of each antenna's delays. [default: none]")]
GainsOption = Annotated[
    Path | None,
    typer.Option(
        "--gains",
        help="Gains in .npz (by antenna) or .npy. [default: gains that give voltages an rms of 16; of 3 for 4 bits]",
    ),
]
NarrowOption = Annotated[
    list[str],
    typer.Option(
        "--narrow",
        help="CENTRE,DECIMATION,TAPS: a narrow band in place of the whole one. CENTRE is in Hz; TAPS are those of the "
        "low-pass filter in front of the decimation (8 to 16 times DECIMATION).",
    ),
]
HeaderOption = Annotated[
    list[str],
    typer.Option(
        "--header",
        help="NAME=VALUE, a field that the header of the samples lacks: sample_rate_hz (Hz), antenna, position_m=X,Y,Z "
        "(geocentric), centre_frequency_hz (Hz), sync_time_unix (s), channel, threads, n_pols, order, sideband; for "
        "Mark 5B n_channels, sample_bits, mjd. Repeatable.",
    ),
]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="A picture of the result: .png, .svg or .pdf.")]
OverwritePictureOption = Annotated[bool, typer.Option("--overwrite", help="Replace the picture of --plot.")]
PackageOption = Annotated[
    str | None, typer.Option("--package", help="Take configs from this package, which `autotune emit` wrote.")
]
RecordsOption = Annotated[
    Path | None,
    typer.Option(
        "--results", help="Take other configs from recorded sweeps in this folder. [default: results, if it exists]"
    ),
]
TuneOption = Annotated[
    str | None,
    typer.Option(
        "--tune",
        help="quick: first tune the kernels that neither package nor records contain. first: try only a few promising "
        "configs of each, within seconds, and keep the fastest in the user's cache.",
    ),
]
FilterBankOption = Annotated[
    str,
    typer.Option(
        "--filter-bank",
        help="How voltages are made from samples: chain (pfb_fir, FFT, postproc), channelise (one kernel), or auto: "
        "channelise where package or records predict that it is faster; on host, NumPy.",
    ),
]
KernelsOnHostOption = Annotated[
    bool,
    typer.Option(
        "--kernels-on-host",
        help="On host, run the CUDA kernels, translated to C++ with checks, in place of NumPy; this is slower.",
    ),
]
ChunkOption = Annotated[
    int | None,
    typer.Option(
        "--chunk",
        min=1,
        help="Samples of each polarisation that the device processes at a time. [default: up to 2^26; host: 2^20]",
    ),
]

OPTIONS = {"n_channels": "--channels", "batches_per_dump": "--accumulate"} | {
    name: f"--{name.replace('_', '-')}"
    for name in ("bits", "chunk", "filter_bank", "spectra_per_heap", "taps", "tune", "window")
}
NAMED = re.compile(rf"(?<![\w./-])({'|'.join(OPTIONS)})=")  # the name of an argument in front of its value
NUMBERS = {"sample_rate_hz": float, "centre_frequency_hz": float, "n_pols": int}
NUMBERS |= {"n_channels": int, "sample_bits": int, "mjd": int}  # fields of Mark 5B


def named(holds: str, does: str = "write") -> str:
    """Returns the names of files, for help: x.ms, x.uvh5 or x.h5."""
    return either([f"x{suffix}" for suffix in formats.suffixes(holds, does)])


def running(
    package: str | None,
    results: Path | None,
    tune: str | None,
    filter_bank: str,
    device: str,
    kernels_on_host: bool,
    chunk: int | None,
    report: Report,
) -> Running:
    """Returns the settings of an engine's run. If ``results`` is None, the folder ./results is used if it exists."""
    here = Path("results")
    records = results or (here if here.is_dir() else None)
    return Running(package, records, tune, filter_bank, device, kernels_on_host, chunk, tell=note, report=report)


def narrow_bands(texts: Sequence[str]) -> tuple[Narrow, ...]:
    """Parses CENTRE,DECIMATION,TAPS of each narrow band; raises UsageError for another form."""
    bands = []
    for text in texts:
        try:
            centre, decimation, taps = text.split(",")
            bands.append(Narrow(float(centre), int(decimation), int(taps)))
        except ValueError:
            raise UsageError(f"--narrow {text}: must be CENTRE,DECIMATION,TAPS, as 1290e6,16,256") from None
    return tuple(bands)


def header_of(texts: Sequence[str]) -> dict[str, object]:
    """Parses NAME=VALUE of each option; the name decides whether a value is a number, a list of numbers or a text."""
    header: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            if not equals:
                raise ValueError
            header[name] = _value(name, value)
        except ValueError:
            raise UsageError(f"--header {text}: must be NAME=VALUE, as sample_rate_hz=64e6") from None
    return header


def _value(name: str, value: str) -> Any:
    if name in NUMBERS:
        return NUMBERS[name](value)
    if name == "position_m":
        return tuple(float(part) for part in value.split(","))
    if name in ("threads", "channel"):
        parts = tuple(int(part) for part in value.split(","))
        return parts if name == "threads" or len(parts) > 1 else parts[0]
    return value


@contextmanager
def told_in_options() -> Iterator[None]:
    """Rewrites UsageErrors of the block, so that they name options of the command in place of arguments."""
    try:
        yield
    except UsageError as error:
        raise UsageError(NAMED.sub(lambda match: f"{OPTIONS[match[1]]} ", str(error))) from error


def nothing(why: str) -> typer.Exit:
    """Prints why a command made nothing; returns the exit to raise, with code 1."""
    note(f"autotune: {why}")
    return typer.Exit(1)


@contextmanager
def followed() -> Iterator[Report]:
    """Yields a function that shows a text and a share of the whole: as a bar on a terminal, else as lines."""
    with ProgressLine(None, in_percent=True, transient=True) as bar:

        def report(text: str, share: float | None) -> None:
            if bar.update(share or 0.0, ProgressText(text), None if share is None else 1.0):
                note(f"  {'' if share is None else f'{share:.0%}, '}{text}")

        yield report
