"""PSRDADA files of 8 bits: a text header of HDR_SIZE bytes, followed by samples.

The reader uses NBIT (8), NDIM (1: real, 2: complex), NPOL, NCHAN, TSAMP (microseconds), OBS_OFFSET (bytes since
UTC_START), UTC_START or MJD_START, FREQ and BW (MHz), TELESCOPE, BASIS (Linear: X and Y), FILE_SIZE (bytes of samples)
and, for several channels and polarisations, ORDER (TFP: time, channel, polarisation; TPF). Files with INSTRUMENT MKBF
hold heaps, whatever their ORDER is.
"""

import re
from datetime import datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

from ....core import schema
from ....core.errors import one_line
from ...streams.samples import SampleInfo
from ...streams.times import DECIMAL, step_of
from .. import checks
from ..flat import FlatPiece, FlatSamples
from ..interleaved_bytes import HeapLayout, Layout, centre_of
from ..joined_bytes import opened_as
from ..losses import LONGER
from ..reading import (
    COARSE,
    Bytes,
    Header,
    HeaderField,
    HeaderOverrides,
    LackingError,
    Start,
    Tell,
    refuse,
    settled,
    unix_of_mjd,
)
from .interface import SAMPLES

MOST_HEADER = 1 << 20  # bytes
USUAL_HEADER = 4096
UTC_START = re.compile(r"(\d{4}-\d\d-\d\d)[-T](\d\d:\d\d:\d\d)(\.\d{0,40})?")
IN_HEAPS = "MKBF"  # INSTRUMENT in PTUSE's recordings of MeerKAT's beamformer
suffixes, holds, help = (), SAMPLES, "DADA"
header_fields = {"order": HeaderField("DADA of several channels and polarisations: TFP or TPF", schema.as_word)}
ORDERS = {"TFP": False, "TPF": True}  # whether polarisations come before channels


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its first bytes."""
    return re.search(rb"^\s*HDR_(SIZE|VERSION)\s", file.take(0, USUAL_HEADER).tobytes(), re.MULTILINE) is not None


def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> FlatSamples:
    """Opens a file.

    A packet is the largest power of two up to 4096 that divides the stated number of samples and the number in the file
    when it is opened.

    Raises:
        UsageError: when its header is wrong, or lacks a needed field that is not given.
    """
    return opened_as(_source, [path], overrides, tell)


def _source(file: Bytes, overrides: HeaderOverrides, tell: Tell) -> FlatSamples:
    """Returns a source of the samples of one channel."""
    header = _header(file)
    if header.integer("NBIT", 1, 64) != 8:
        refuse(file.path, f"it has samples of NBIT={header.text('NBIT')} bits, but only 8 can be read")
    n_channels = header.integer("NCHAN", 1, checks.MOST_CHANNELS, 1)
    n_pols, n_parts = header.integer("NPOL", 1, 2), header.integer("NDIM", 1, 2)
    channel = overrides.one_channel(file.path, n_channels)
    is_in_heaps = header.text("INSTRUMENT") == IN_HEAPS
    order = _order(header, overrides) if n_pols > 1 and n_channels > 1 and not is_in_heaps else "TFP"
    layout = (HeapLayout if is_in_heaps else Layout)(n_channels, n_pols, n_parts == 2, channel, ORDERS[order])
    begin = header.integer("HDR_SIZE", 1, MOST_HEADER, USUAL_HEADER)
    offset, rest = divmod(header.integer("OBS_OFFSET", 0, checks.MOST_FIRST, 0), layout.sample_bytes)
    if rest:
        refuse(file.path, f"OBS_OFFSET is in the middle of a sample, which takes {layout.sample_bytes} bytes")
    info = SampleInfo(
        telescope=header.text("TELESCOPE"),
        observer=header.text("OBSERVER"),
        sample_bits=layout.sample_bits,
        n_pols=n_pols,
        sample_rate_hz=overrides.rate(partial(_rate, header)),
        packet=1,
        first_timestamp=offset,
        antenna=header.text("TELESCOPE"),
        centre_frequency_hz=_centre(header, layout),
        polarisations="XY" if n_pols == 2 and header.text("BASIS").lower() == "linear" else "",
    )
    start = _start(header, info.sample_rate_hz)
    info = settled(file.path, info, start, overrides, tell)
    number = header.integer("FILE_NUMBER", 0, checks.MOST_TIME) if "FILE_NUMBER" in header else None
    stated = header.integer("FILE_SIZE", 0, checks.MOST_TIME, 0)
    n_more = file.size() - begin - stated
    n_stated = layout.whole(stated) if number is not None or n_more <= 0 else 0
    source = FlatSamples(file, info, layout, [FlatPiece(begin, 0, n_stated or None)], tell)
    if stated and not n_stated and layout.whole(max(0, n_more)):  # the next file of a series has what follows
        text = f"it has {n_more} bytes after those of its FILE_SIZE={stated}: they are read, too"
        source.losses.note(LONGER, n_more, "bytes", text)
    if start is not None and overrides.sync_time_unix is None and header.text("PICOSECONDS", "0") != "0":
        more = f"its header has PICOSECONDS={header.text('PICOSECONDS')}, which is not added to {start.said}"
        tell(one_line(f"{file.path}: {more}: give sync_time_unix if it belongs to the start"))
    source.falls = f"BW={header.text('BW')}" if "BW" in header and header.number("BW") < 0 else ""
    source.number = number
    return source


def _header(file: Bytes) -> Header:
    """Returns the header's fields. The value is the second word of a line, and # begins a comment."""
    start = file.take(0, USUAL_HEADER).tobytes()
    size = re.search(rb"^\s*HDR_SIZE\s+(\d{1,9})", start, re.MULTILINE)
    text = file.take(0, min(MOST_HEADER, max(USUAL_HEADER, int(size[1])))).tobytes() if size else start
    lines = [line.partition("#")[0].split() for line in text.partition(b"\0")[0].decode("latin-1").splitlines()]
    return Header(file.path, "its header", {line[0]: line[1] for line in lines if len(line) > 1})


def _order(header: Header, overrides: HeaderOverrides) -> str:
    order = overrides.order or header.text("ORDER")
    if order not in ORDERS:
        problem = f"its ORDER is {order}" if order else "its header lacks ORDER"
        why = (
            f"it has several channels and polarisations, and {problem}: give order='TFP' if a sample's polarisations "
            "are side by side, or 'TPF' if its channels are"
        )
        raise LackingError(header.path, why, "order", "TFP")
    return order


def _rate(header: Header) -> float:
    microseconds = header.number("TSAMP", instead="sample_rate_hz")
    if microseconds < 1e6 / checks.MOST_RATE_HZ:
        refuse(header.path, f"its header has TSAMP={header.text('TSAMP')}, must be the microseconds of a sample")
    return float(10**6 / microseconds)


def _centre(header: Header, layout: Layout) -> float | None:
    if "FREQ" not in header or (layout.n_channels > 1 and "BW" not in header):
        return None
    centre_hz, bandwidth_hz = 10**6 * header.number("FREQ"), 10**6 * header.number("BW", 0.0)
    return centre_of(layout.channel, layout.n_channels, centre_hz, bandwidth_hz)


def _start(header: Header, rate: float) -> Start | None:
    """Returns the time at which OBS_OFFSET is 0; None if the header lacks it or it cannot be read.

    It is UTC_START, or MJD_START if that agrees with UTC_START and has more digits, which are needed.
    """
    utc, mjd = _utc_start(header), _mjd_start(header)
    if utc is None or mjd is None:
        return utc or mjd
    is_finer = utc.step_s * Fraction(rate) > COARSE and mjd.step_s < utc.step_s
    return mjd if is_finer and abs(mjd.time - utc.time) <= utc.step_s else utc


def _utc_start(header: Header) -> Start | None:
    text = header.text("UTC_START")
    if (match := UTC_START.fullmatch(text)) is None:
        return None
    try:
        whole = datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00")
    except ValueError:
        return None
    part = f"0{match[3] or '.'}"
    time = Fraction(int(whole.timestamp())) + Fraction(part)
    return Start(time, f"UTC_START={text}", step_of(part))


def _mjd_start(header: Header) -> Start | None:
    text = header.text("MJD_START")
    if DECIMAL.fullmatch(text) is None:
        return None
    time = unix_of_mjd(header.number("MJD_START"))
    return Start(time, f"MJD_START={text}", step_of(text) * 86400 if time.denominator > 1 else Fraction(0))
