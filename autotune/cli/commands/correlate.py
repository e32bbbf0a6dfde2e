"""`autotune correlate` makes visibilities from the samples or voltages of several antennas."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import UsageError
from ...core.units import percent, seconds_text
from ...engines.files.formats.interface import VISIBILITIES, VOLTAGES
from ...engines.files.header_fields import parsed_header
from ...engines.jobs import Bands, CorrelateResult, Dumps, Running
from ...engines.jobs import correlate as run
from ...engines.run.counters import si
from ..console import note, stdout
from ..stopped import stopped
from .declared_options import given_of, with_settings
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
from .options import BOTH_WORDS, JsonOption

DECLINATION = re.compile(r"[+-]\d+([:d.]\d*)*[m\d.s]*")  # the second word of a direction


@with_settings(Dumps, Bands, Running, without=("channels", "with_whole"))
def correlate(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="One recording per antenna, a folder of recordings, the file of an array (array.toml, see `autotune "
            f"array`), or one file of voltages per antenna: {named(VOLTAGES, 'read')}."
        ),
    ],
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels", min=1, max=1 << 24, help="Channels; required for samples. Voltages already have channels."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help=f"A new file for visibilities: {named(VISIBILITIES)}. [default: none, with --plot]"),
    ] = None,
    header: HeaderOption = [],
    trust_header: TrustOption = False,
    phase_centre: Annotated[
        str | None,
        typer.Option(
            "--phase-centre",
            metavar="RA DEC",
            help="Stop the fringes of this direction (ICRS), from positions and times: '12h29m06.7s +2d03m09s', or "
            "degrees. Adds to --delays. [default: none]",
        ),
    ] = None,
    plot: PlotOption = None,
    overwrite: OverwritePictureOption = False,
    sky: Annotated[
        Path | None,
        typer.Option("--sky", help="With --plot: also draw the fringes that this sky (sky.toml) should give."),
    ] = None,
    json: JsonOption = False,
    **options: Any,
) -> None:
    """Correlate all pairs of antennas, from samples or voltages, and add up the products into dumps.

    Voltages that are made from samples stay on the device. Dumps start at multiples of their length. Ctrl-C stops
    after a whole heap.
    """
    if out is None and plot is None:
        raise UsageError("give --out x.h5 for the visibilities, or --plot x.png to look at them, or both")
    if phase_centre is not None and (rest := [each for each in map(str, inputs) if DECLINATION.fullmatch(each)]):
        raise UsageError(f"--phase-centre {phase_centre} {rest[0]}: {BOTH_WORDS}")
    with told_in_options(), followed() as report:
        result = run(
            inputs,
            None if channels is None else bands_of({**options, "channels": channels}),
            out,
            header={**parsed_header(header), **({"trust_header": True} if trust_header else {})},
            keep=False,
            plot=plot,
            overwrite=overwrite,
            sky=sky,
            phase_centre=phase_centre,
            running=running(options, report),
            **given_of(Dumps, options),
        )
    why, names = result.why_nothing, [each.antenna or f"antenna {n}" for n, each in enumerate(result.info.antennas)]
    if json:
        summary(result, None if why else plot, **_as_json(result, names))
    elif not why:
        for line in (_result_text(result), plot, *(left.text(names) for left in result.residual_delays)):
            if line is not None:
                stdout.print(str(line), markup=False)
    note(_pace(result))
    if result.is_stopped:
        raise stopped("everything read so far is processed and written; for the whole recording, give another output")
    if why:
        raise nothing(why)
    if result.has_failed:
        raise lacking(result.losses)


def _as_json(result: CorrelateResult, names: Sequence[str]) -> dict[str, object]:
    info = result.info
    missing = {"heaps_missing": result.heaps_missing, "share_missing": result.share_missing}
    antennas = [{"antenna": names[n], **counted(each)} for n, each in enumerate(result.f_counters)]
    fringes = [
        vars(left)
        | {"baseline": [names[left.baseline.i], names[left.baseline.j]], "text": left.text(names)}
        | {"swapped": {names[n]: stated for n, stated in left.swapped.items()}}
        for left in result.residual_delays
    ]
    dumps = {"dump_s": info.dump_samples / info.antennas[0].sample_rate_hz, **counted(result.counters), **missing}
    shape = {"n_channels": info.n_channels, "n_baselines": info.n_baselines, "n_products": info.n_products}
    made = {"visibilities": result.path, **shape, "products": info.product_names}
    return {**made, **dumps, "antennas": antennas, "fringes": fringes}


def _result_text(result: CorrelateResult) -> str:
    info, counters = result.info, result.counters
    products = "1 product" if info.n_products == 1 else f"{info.n_products} products"
    products += f" ({' '.join(info.product_names)})" if info.product_names else ""
    shape = f"{info.n_channels} channels x {info.n_baselines} baselines x {products}"
    length = seconds_text(info.dump_samples / info.antennas[0].sample_rate_hz)
    parts = [f"{counters.dumps_out + counters.dumps_empty} dumps of {length}, {shape}"]
    if counters.dumps_empty:
        parts.append(f"in {counters.dumps_empty} of them every antenna misses data")
    if counters.dumps_skipped:
        parts.append(f"{counters.dumps_skipped} missing: no data for them arrived")
    if result.share_missing > 0:
        parts.append(f"{100 * result.share_missing:.2g} % of the spectra missing (see the weights)")
    if result.heaps_missing:
        parts.append(f"{result.heaps_missing} heaps missing")
    if counters.saturated:
        parts.append(f"{counters.saturated} visibilities clipped to 32 bits")
    return f"{result.path or 'visibilities'}: {'; '.join(parts)}"


def _pace(result: CorrelateResult) -> str:
    n = sum(each.samples_in for each in result.f_counters)
    rate = f"{si(n / result.seconds)}S/s of all antennas, " if n and result.seconds else ""
    return f"{seconds_text(result.seconds)}, {rate}kernels idle {percent(result.kernels_idle)}"
