"""UVH5 files and Measurement Sets, written by pyuvdata: a sink for an X-engine, and a conversion.

Both formats need all dumps before they can be written. Visibilities therefore go to an HDF5 file first, ``x.uvh5.h5``
for ``x.uvh5``, which is removed when the other file is complete; after a kill, ``convert`` does the rest.

The conventions: antenna 1 of a baseline (j, i), i <= j, is j, since a phase in pyuvdata is that of antenna 2 minus that
of antenna 1; polarisations that nothing names are x and y, and the history says so; h and v are x and y of feeds
perpendicular and parallel to the direction of the zenith (``x_orientation`` east); the angles of other feeds are not
known. Times are the middles of integrations. The phase centre is the direction whose fringes delays stopped, if it is
known; otherwise the file says unprojected. Data are averages over the
spectra that came, complex64. ``nsample_array`` is the share of a dump's spectra that came, so its product with
``integration_time`` is the time in the data; in a Measurement Set it is WEIGHT_SPECTRUM. Products without a spectrum
are flagged, and 0.
"""

import gc
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from fractions import Fraction
from functools import partial
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ...corrections.directions import icrs_of, location_of, offline, why_not_geocentric
from ...streams.phase_centre import PhaseCentre
from ...streams.visibilities import VisibilityInfo
from ..hdf5 import one_line_errors, reserve
from ..reading import Tell, refuse, refuse_existing
from .hdf5_visibilities import Dump, VisibilityDumps, VisibilityFile
from .interface import VISIBILITIES, either

suffixes, holds, help = (".ms", ".uvh5"), VISIBILITIES, "UVH5 or a Measurement Set"
needs = ("antenna", "position_m", "sync_time_unix", "centre_frequency_hz")  # fields that each antenna must have
CODES = {"RR": -1, "LL": -2, "RL": -3, "LR": -4, "XX": -5, "YY": -6, "XY": -7, "YX": -8}  # first antenna 1's
HV_AS_XY = str.maketrans("HV", "XY")
HV_ANGLES = {"x": np.pi / 2, "y": 0.0}  # a position angle is 0 in the direction of the zenith
UNKNOWN = "unknown"  # the name of a telescope or an observer that nothing says
METADATA_BYTES = 1 << 13  # memory of a row besides, whose time, place and direction are computed
AT_ONCE = 1 << 21  # bytes of visibilities to convert together
PRODUCT_BYTES, ROW_BYTES, REST_BYTES = 30, 512, 1 << 20  # upper limits of a file's bytes
SHORTEST_S = 1e-3  # the shortest dump: Julian dates of 64 bits are 40 microseconds apart
JULIAN_1970 = Fraction("2440587.5")


def write(path: Path, info: VisibilityInfo, tell: Tell) -> "UvData":
    """Makes a sink, whose ``close`` makes the file. Raises UsageError as ``UvData`` does."""
    if info.is_delayed and not info.phase_centre:
        tell(
            f"{path}: it says unprojected, though delays stop fringes: the source that they point at will seem to be "
            "at the zenith; state the direction in [phase_centre] of the file of delays"
        )
    if not info.are_named:
        called = "x" if info.n_pols == 1 else "x and y"
        tell(f"{path}: polarisations are called {called}: nothing says what they are (--header polarisations=..)")
    return UvData(path, info)


class UvData:
    """A sink of visibilities, whose ``close`` makes a UVH5 file (x.uvh5) or a Measurement Set (x.ms).

    Raises:
        UsageError: when packages are missing, the path has another suffix or exists, or ``info`` lacks a field that the
            formats need: names and geocentric positions of antennas, the centre frequency and the time.
    """

    def __init__(self, path: str | Path, info: VisibilityInfo) -> None:
        self._path = Path(path)
        _must_be_possible(self._path, info)
        self._first = Path(f"{path}.h5")
        self._file = VisibilityFile(self._first, info)
        self._has_dumps = False  # whether a dump has data; without data no file is made

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Append a dump; see ``VisibilitySink``."""
        self._has_dumps |= bool(weights.any())
        self._file.write(timestamp, visibilities, weights, saturated)

    def close(self) -> None:
        """Make the file from the dumps.

        Raises:
            UsageError: when it cannot be stored; the dumps stay in ``x.uvh5.h5``.
        """
        self._file.close()
        if self._first.exists():  # a second close finds nothing
            if self._has_dumps:
                convert(self._first, self._path)
            self._first.unlink()


def convert(source: str | Path, target: str | Path) -> None:
    """Makes a UVH5 file or a Measurement Set from the visibilities in an HDF5 file, which stays.

    Raises:
        UsageError: as ``UvData`` does, and when the target cannot be written, or the source has no dump.
    """
    target = Path(target)
    with closing(VisibilityDumps(source)) as dumps:
        _must_be_possible(target, dumps.info)
        times = dumps.timestamps()
        if not len(times):
            refuse(target, f"it would be empty: {source} has no dump")
        part = target.with_name(f".{target.name}")
        _remove(part)
        _remove(_later(part))
        try:
            with one_line_errors(target, f"it cannot be written, but the visibilities are in {source}"), _quiet():
                _must_have_room(part, dumps.info, len(times))
                write = _write_uvh5 if target.suffix == ".uvh5" else _write_ms
                write(dumps, times, part)
                part.rename(target)
        finally:
            _remove(part)
            _remove(_later(part))


def _parts(dumps: VisibilityDumps, times: np.ndarray) -> Iterator[tuple[slice, list[Dump]]]:
    """Yields the dumps in parts of some MiB, with their places in ``times``."""
    info, source = dumps.info, iter(dumps)
    row_bytes = info.n_channels * info.n_products * 8 + METADATA_BYTES
    n_together = max(1, AT_ONCE // (info.n_baselines * row_bytes))
    for first in range(0, len(times), n_together):
        here = slice(first, min(len(times), first + n_together))
        yield here, list(islice(source, here.stop - first))


def _write_uvh5(dumps: VisibilityDumps, times: np.ndarray, path: Path) -> None:
    observation = _metadata(dumps.info, times)
    observation.initialize_uvh5_file(str(path), data_write_dtype=np.dtype(np.complex64))
    for here, some in _parts(dumps, times):
        values, flags, weights = _arrays(dumps.info, some)
        observation.write_uvh5_part(
            str(path),
            data_array=values,
            flag_array=flags,
            nsample_array=weights,
            blt_inds=here.start * dumps.info.n_baselines + np.arange(len(values)),
            check_header=False,
        )


def _write_ms(dumps: VisibilityDumps, times: np.ndarray, path: Path) -> None:
    """Writes a Measurement Set of the first part, to which the rows of later ones are added.

    Without a phase centre, fringes are turned to the zenith at the first time, since the format has no other data.
    """
    from astropy.time import Time
    from casacore.tables import table

    writable = partial(table, readonly=False, ack=False)
    later, zenith = _later(path), None
    scans = 1 + np.cumsum(np.diff(times, prepend=times[:1]) > dumps.info.dump_samples)  # one begins after a gap
    for here, some in _parts(dumps, times):
        observation = _metadata(dumps.info, times[here])
        observation.scan_number_array = np.repeat(scans[here], dumps.info.n_baselines)
        observation.data_array, observation.flag_array, observation.nsample_array = _arrays(dumps.info, some)
        if dumps.info.phase_centre is None:
            zenith = zenith or Time(observation.time_array[0], format="jd")
            observation.phase_to_time(zenith)
        observation.write_ms(str(later if here.start else path))
        if here.start:
            for rows in ("", "::POINTING"):
                with table(f"{later}{rows}", ack=False) as more, writable(f"{path}{rows}") as target:
                    more.copyrows(target)
            _remove(later)
        gc.collect()  # pyuvdata's objects hold each other
    with writable(f"{path}::POLARIZATION") as polarization:
        types = polarization.getcell("CORR_TYPE", 0)  # pyuvdata 3.2 has R before L in FEED, but counts L as the first
        polarization.putcell("CORR_PRODUCT", 0, np.stack(np.divmod(types - types.min(), 2), axis=-1))
    with table(str(path), ack=False) as main, writable(f"{path}::OBSERVATION") as one:
        half = main.getcell("INTERVAL", 0) / 2
        ends = main.getcell("TIME", 0) - half, main.getcell("TIME", main.nrows() - 1) + half
        one.putcell("TIME_RANGE", 0, np.array(ends))


def _later(path: Path) -> Path:
    """Returns the path of a later part of a Measurement Set, which is removed."""
    return path.with_name(f"{path.name}.later")


def _arrays(info: VisibilityInfo, dumps: list[Dump]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns complex64 averages, bool flags and float32 weights of dumps: [n_dumps x n_baselines, C, n_products]."""
    values = np.empty((len(dumps), info.n_baselines, info.n_channels, info.n_products), np.complex64)
    n_spectra = np.array([dump.weights for dump in dumps])[:, :, np.newaxis]
    for out, dump, n in zip(values, dumps, n_spectra, strict=True):
        means = dump.visibilities.transpose(1, 0, 2, 3) / np.maximum(n, 1)[..., np.newaxis]
        out.real, out.imag = means[..., 0], means[..., 1]
    flags = np.broadcast_to(n_spectra == 0, values.shape).reshape(-1, *values.shape[2:]).copy()
    weights = np.broadcast_to(n_spectra / info.dump_spectra, values.shape).reshape(flags.shape).astype(np.float32)
    values = values.reshape(flags.shape)
    values[flags] = 0
    return values, flags, weights


def _metadata(info: VisibilityInfo, times: np.ndarray) -> Any:
    """Returns pyuvdata's UVData with all metadata, without the data."""
    from pyuvdata import Telescope, UVData

    first = info.antennas[0]
    positions = np.array([antenna.position_m for antenna in info.antennas])
    centre = positions.mean(axis=0)
    numbers, location = range(len(positions)), location_of(positions)
    names = {antenna.telescope for antenna in info.antennas}
    name = names.pop() if len(names) == 1 else ""  # the headers of other stations' recordings have their own
    telescope = Telescope.new(
        name=name or UNKNOWN,
        instrument=name or UNKNOWN,
        location=location,
        antenna_positions=dict(zip(numbers, positions - centre, strict=True)),
        antenna_numbers=list(numbers),
        antenna_names=[antenna.antenna for antenna in info.antennas],
        **_feeds(info),
    )
    if any(antenna.mount for antenna in info.antennas):
        telescope.mount_type = [antenna.mount or "other" for antenna in info.antennas]
    if any(antenna.dish_diameter_m for antenna in info.antennas):
        telescope.antenna_diameters = np.array([antenna.dish_diameter_m or 0.0 for antenna in info.antennas])
    observers = {antenna.observer for antenna in info.antennas if antenna.observer}
    assert first.sync_time_unix is not None and info.centre_frequency_hz is not None
    directed = {} if info.phase_centre is None else _catalogue(info.phase_centre, location)
    rate = Fraction(first.sample_rate_hz)
    middles = [first.sync_time_unix + (time + Fraction(info.middle)) / rate for time in times.tolist()]
    channels = np.arange(info.n_channels) - info.n_channels / 2
    return UVData.new(
        freq_array=info.centre_frequency_hz + channels * info.channel_width_hz,
        channel_width=abs(info.channel_width_hz),
        polarization_array=[CODES[name[::-1].translate(HV_AS_XY)] for name in info.products(0, 0)],
        telescope=telescope,
        update_telescope_from_known=False,
        times=np.array([float(JULIAN_1970 + middle / 86400) for middle in middles]),
        antpairs=[(j, i) for j in numbers for i in range(j + 1)],
        do_blt_outer=True,
        time_axis_faster_than_bls=False,
        integration_time=info.dump_samples / first.sample_rate_hz,
        vis_units="uncalib",
        history="made by autotune" + ("" if info.are_named else "; nothing says what polarisations are"),
        extra_keywords={"observer": ", ".join(sorted(observers)) or UNKNOWN},
        **directed,
    )


def _feeds(info: VisibilityInfo) -> dict[str, Any]:
    """Returns the feeds whose angles are known, as arguments of ``Telescope.new``: h and v."""
    feeds = ["xy"[place] for place in info.places]
    angles = {"mount_type": "other", "feed_array": feeds, "feed_angle": [HV_ANGLES[feed] for feed in feeds]}
    return angles if "HV" in info.bases else {}


def _catalogue(centre: PhaseCentre, location: object) -> dict[str, object]:
    """Returns the phase centre in ICRS, as arguments of ``UVData.new``."""
    place = icrs_of(centre, location)
    entry = {"cat_name": centre.name, "cat_type": "sidereal", "cat_lon": place[0], "cat_lat": place[1]}
    return {"phase_center_catalog": {0: {**entry, "cat_frame": "icrs", "cat_epoch": 2000.0}}}


def _must_be_possible(path: Path, info: VisibilityInfo) -> None:
    """Raises UsageError when such visibilities cannot be written to ``path``. The text lists all missing fields."""
    if path.suffix not in suffixes:
        refuse(path, f"its name must end in {either(suffixes)}")
    _packages(path)
    if path.exists():
        refuse_existing(path)
    lacking = [name for name in ("centre_frequency_hz", "channel_width_hz") if not getattr(info, name)]
    for number, antenna in enumerate(info.antennas):
        for name in ("antenna", "position_m", "sync_time_unix"):
            if getattr(antenna, name) in (None, ""):
                lacking.append(f"{name} of antenna {antenna.antenna or number}")
    if lacking:
        refuse(path, f"{path.suffix[1:]} needs what is not known, {', '.join(lacking)}: give it with the samples")
    for antenna in info.antennas:
        if why := why_not_geocentric(antenna):
            refuse(path, why)
    if len(bases := set(info.bases)) > 1:
        refuse(path, f"its antennas have one pair of polarisations, not {' and '.join(sorted(bases))}: write x.h5")
    name, n = Counter(antenna.antenna for antenna in info.antennas).most_common(1)[0]
    if n > 1:
        refuse(path, f"{n} antennas have the name {name}")
    if len({antenna.sync_time_unix for antenna in info.antennas}) > 1:
        refuse(path, "antennas differ in sync_time_unix")
    if info.dump_samples / info.antennas[0].sample_rate_hz < SHORTEST_S:
        refuse(path, f"it cannot tell the times of dumps of less than {SHORTEST_S} s apart")


def _must_have_room(path: Path, info: VisibilityInfo, n_dumps: int) -> None:
    """Raises OSError when the disk has no room for the whole file, since HDF5 would crash later."""
    n_products = n_dumps * info.n_baselines * info.n_channels * info.n_products
    with path.open("xb") as file:
        reserve(file.fileno(), 0, PRODUCT_BYTES * n_products + ROW_BYTES * n_dumps * info.n_baselines + REST_BYTES)
    path.unlink()


def _packages(path: Path) -> None:
    """Raises UsageError when a package is missing."""
    try:
        import pyuvdata  # noqa: F401
    except ImportError as error:
        refuse(path, f"UVH5 and Measurement Sets need pyuvdata ({error}): pip install pyuvdata, or autotune's extra uv")
    if path.suffix == ".ms":
        try:
            import casacore.tables  # noqa: F401
        except ImportError as error:
            why = f"Measurement Sets need casacore ({error})"
            refuse(path, f"{why}: pip install python-casacore, or autotune's extra ms, or write x.uvh5")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps pyuvdata's output and warnings from the terminal, and astropy from the network."""
    with offline(), redirect_stdout(StringIO()):
        yield


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
