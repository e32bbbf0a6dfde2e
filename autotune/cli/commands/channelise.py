"""`autotune channelise` makes voltages from the samples of one antenna."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import UsageError
from ...core.units import percent, seconds_text
from ...engines.files import formats
from ...engines.files.formats.interface import SAMPLES, VOLTAGES, either
from ...engines.files.header_fields import parsed_header
from ...engines.jobs import BandResult, Bands, Running
from ...engines.jobs import channelise as run
from ...engines.run.counters import si
from ..console import note, stdout
from ..stopped import stopped
from .declared_options import with_settings
from .engine_options import (
    HeaderOption,
    OverwritePictureOption,
    PlotOption,
    TrustOption,
    bands_of,
    counted,
    followed,
    lacking,
    named,
    nothing,
    running,
    summary,
    told_in_options,
)
from .options import JsonOption


@with_settings(Bands, Running)
def channelise(
    samples: Annotated[
        Path,
        typer.Argument(help=f"A recording: {either(formats.names(SAMPLES))}."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help=f"A new file for voltages: {named(VOLTAGES)}. [default: none, with --plot]"),
    ] = None,
    header: HeaderOption = [],
    trust_header: TrustOption = False,
    plot: PlotOption = None,
    overwrite: OverwritePictureOption = False,
    json: JsonOption = False,
    **options: Any,
) -> None:
    """Turn samples into quantised voltages of channels: filter bank, delays, gains. Ctrl-C stops after a whole heap.

    With several bands each narrow one goes to its own file: x-narrow1.h5, x-narrow2.h5 and so on.
    """
    if out is None and plot is None:
        raise UsageError("give --out x.h5 for the voltages, or --plot x.png to look at them, or both")
    with told_in_options(), followed() as report:
        result = run(
            samples,
            bands_of(options),
            out,
            header={**parsed_header(header), **({"trust_header": True} if trust_header else {})},
            keep=False,
            plot=plot,
            overwrite=overwrite,
            running=running(options, report),
        )
    picture = plot if result.bands[0].counters.heaps_out else None
    if json:
        summary(result, picture, bands=list(map(_as_json, result.bands)))
    else:
        for line in (*(_band_text(band) for band in result.bands if not band.why_nothing), picture):
            if line is not None:
                stdout.print(str(line), markup=False)
    n = result.bands[0].counters.samples_in
    rate = f"{si(n / result.seconds)}S/s" if result.seconds else ""
    note(f"{seconds_text(result.seconds)}, {rate} of each polarisation, kernels idle {percent(result.kernels_idle)}")
    if result.is_stopped:
        raise stopped("everything read so far is processed and written; for the whole recording, give another output")
    if empty := next((band for band in result.bands if band.why_nothing), None):
        raise nothing(f"{empty.path or plot}: {empty.why_nothing}")
    if result.has_failed:
        raise lacking(result.losses)


def _as_json(band: BandResult) -> dict[str, object]:
    info, saturated = band.info, {"saturated": band.counters.saturated.tolist()}
    shape = {"n_channels": info.n_channels, "spectra_per_heap": info.spectra_per_heap, "n_pols": info.n_pols}
    return {
        **{"voltages": band.path, **shape, "polarisations": info.samples.polarisations, "bits": info.bits},
        **counted(band.counters),
        **saturated,
    }


def _band_text(band: BandResult) -> str:
    counters, info = band.counters, band.info
    names = f" ({' '.join(info.samples.polarisations)})" if info.samples.polarisations else ""
    shape = f"{info.n_channels} channels x {info.spectra_per_heap} spectra x {info.n_pols} polarisations{names}"
    parts = [f"{counters.heaps_out} heaps of {shape}, {info.bits} bits"]
    if counters.heaps_missing:
        parts.append(f"{counters.heaps_missing} left out, since samples are missing")
    if counters.spectra_missing:
        n_all = (counters.heaps_out + counters.heaps_missing) * info.spectra_per_heap * info.n_pols
        parts.append(f"{100 * counters.spectra_missing / n_all:.2g} % of the spectra missing")
    if counters.power.any():
        parts.append("power " + " ".join(f"{level:.1f}" for level in counters.dbfs) + " dBFS")
    n = counters.heaps_out * info.n_channels * info.spectra_per_heap
    if n and counters.saturated.any():
        parts.append("saturated " + " ".join(f"{share:.2%}" for share in counters.saturated / n))
    return f"{band.path or 'voltages'}: {'; '.join(parts)}"
