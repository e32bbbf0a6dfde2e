"""The options, the progress line and the messages that `channelise` and `correlate` share."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import UsageError
from ...engines.files import formats
from ...engines.files.formats.interface import either
from ...engines.files.header_fields import header_fields
from ...engines.files.losses import DataLoss
from ...engines.jobs import Bands, ChanneliseResult, CorrelateResult, Dumps, Narrow, Running
from ...engines.jobs.running import Report, no_report
from ...engines.run.counters import FCounters, XCounters
from ...system.setting import declared
from ..console import ProgressLine, ProgressText, note, print_json
from .declared_options import given_of

HeaderOption = Annotated[
    list[str],
    typer.Option(
        "--header",
        help="NAME=VALUE, a field of the header of the samples that it lacks, or that replaces its own: "
        f"{'; '.join(f'{name} ({one.help})' for name, one in header_fields().items())}. Repeatable.",
    ),
]
TrustOption = Annotated[
    bool, typer.Option("--trust-header", help="Keep values of headers that the data, physics or the clock contradict.")
]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="A picture of the result: .png, .svg or .pdf.")]
OverwritePictureOption = Annotated[bool, typer.Option("--overwrite", help="Replace the picture of --plot.")]
OPTIONS = {one.name: one.option for kind in (Bands, Dumps, Running) for one in declared(kind).values()}
NAMED = re.compile(rf"(?<![\w./-])({'|'.join(OPTIONS)})=")  # the name of an argument in front of its value


def named(holds: str, does: str = "write") -> str:
    """Returns the names of files, for help: x.ms, x.uvh5 or x.h5."""
    return either([f"x{suffix}" for suffix in formats.suffixes(holds, does)])


def running(options: Mapping[str, Any], report: Report = no_report) -> Running:
    """Returns the settings of an engine's run. Without results, the folder ./results is used if it exists."""
    here = {"results": Path("results")} if Path("results").is_dir() else {}
    return Running(**here | given_of(Running, options), tell=note, report=report)


def bands_of(options: Mapping[str, Any]) -> Bands:
    """Returns the bands that the options of a command ask for."""
    return Bands(**{**given_of(Bands, options), "narrow": narrow_bands(options["narrow"])})


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


@contextmanager
def told_in_options() -> Iterator[None]:
    """Rewrites UsageErrors of the block, so that they name options of the command in place of arguments."""
    try:
        yield
    except UsageError as error:
        raise UsageError(NAMED.sub(lambda match: f"{OPTIONS[match[1]]} ", str(error))) from error


def nothing(why: str) -> typer.Exit:
    """Prints why a command fails; returns the exit to raise, with code 1."""
    note(f"autotune: {why}")
    return typer.Exit(1)


def summary(result: ChanneliseResult | CorrelateResult, picture: Path | None, **more: object) -> None:
    """Prints the summary of a run as JSON."""
    losses = [loss.as_json() for loss in result.losses]
    ends = {"losses": losses, "is_stopped": result.is_stopped, "seconds": result.seconds}
    print_json({**more, "picture": picture, **ends})


def counted(counters: FCounters | XCounters) -> dict[str, object]:
    """Returns the counts of an engine for a summary."""
    return {name: value for name, value in vars(counters).items() if isinstance(value, int)}


def lacking(losses: Sequence[DataLoss]) -> typer.Exit:
    """Prints why a strict command fails although its output is whole; returns the exit to raise, with code 1."""
    files = {loss.path for loss in losses if not loss.is_harmless}
    return nothing(f"--strict: data of {len(files)} recordings are lost, as the lines above say; the output is whole")


@contextmanager
def followed() -> Iterator[Report]:
    """Yields a function that shows a text and a share of the whole: as a bar on a terminal, else as lines."""
    with ProgressLine(None, in_percent=True, transient=True) as bar:

        def report(text: str, share: float | None) -> None:
            if bar.update(share or 0.0, ProgressText(text), None if share is None else 1.0):
                note(f"  {'' if share is None else f'{share:.0%}, '}{text}")

        yield report
