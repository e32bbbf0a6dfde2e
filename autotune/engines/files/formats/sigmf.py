"""SigMF recordings: metadata in JSON, x.sigmf-meta, and samples in x.sigmf-data in the same folder.

The reader uses core:datatype, sample_rate, num_channels, offset and trailing_bytes, and in each capture
core:sample_start, global_index (a gap means missing samples), header_bytes, frequency and datetime (the time of its
first sample).
Source: the Signal Metadata Format, https://sigmf.org.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from ....core import schema
from ....core.errors import one_line
from ...streams.samples import SampleInfo
from ...streams.times import step_of
from .. import checks
from ..flat import FlatPiece, FlatSamples
from ..interleaved_bytes import Layout
from ..numbers import TYPES, numbers_of
from ..reading import (
    Bytes,
    HeaderOverrides,
    Start,
    Tell,
    closed_on_error,
    refuse,
    start_of,
    tell_coarse,
    whole_content,
)
from ..toml import checked
from .interface import SAMPLES

META, DATA = ".sigmf-meta", ".sigmf-data"
suffixes, holds, help = (META, DATA, ".sigmf", ".sigmf-collection"), SAMPLES, "SigMF"
MOST_META = 1 << 26  # bytes
MOST_CAPTURES = 1 << 14
TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(\.\d{1,40})?([Zz]|[+-]\d\d:?\d\d)")


def _count(most: int = checks.MOST_FIRST) -> schema.Check:
    return checks.integer(0, most)


GLOBAL = {
    "core:datatype": schema.as_word,
    "core:sample_rate": checks.rate,
    "core:num_channels": checks.integer(1, checks.MOST_CHANNELS),
    "core:offset": _count(),
    "core:trailing_bytes": _count(),
    "core:dataset": schema.as_word,
    "core:metadata_only": schema.as_flag,
}
CAPTURE = {
    "core:sample_start": _count(),
    "core:global_index": _count(),
    "core:header_bytes": _count(),
    "core:frequency": checks.real,
    "core:datetime": schema.as_word,
}
CHECK = schema.members_of(
    {
        "global": schema.members_of(GLOBAL, ("core:datatype",), other=lambda value: value),
        "captures": schema.sequence_of(schema.members_of(CAPTURE, ("core:sample_start",), other=lambda value: value)),
    },
    ("global",),
    other=lambda value: value,
)
Capture = Mapping[str, Any]


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its name."""
    return file.path.suffix in suffixes


def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> FlatSamples:
    """Opens a recording by its metadata or by its samples.

    Raises:
        UsageError: when the metadata are wrong, or lack a needed field that is not given; for archives, collections,
            and samples in a file with another name.
    """
    if path.suffix == ".sigmf":
        refuse(path, f"it is an archive: unpack it with `tar xf {path.name}`, and give the {META} file from it")
    if path.suffix == ".sigmf-collection":
        refuse(path, f"it lists recordings: give the {META} files of those that you want")
    path = path.with_suffix(META)
    content = checked(path, "it", CHECK, _parsed(path))
    metadata, captures = (
        content["global"],
        content.get("captures") or ({"core:sample_start": content["global"].get("core:offset", 0)},),
    )
    if "core:dataset" in metadata:
        refuse(
            path,
            f"its samples are in {metadata['core:dataset']}, which makes it a non-conforming dataset: call that file "
            f"{path.stem}{DATA} and leave core:dataset out, or write a TOML header with sample_type",
        )
    if metadata.get("core:metadata_only"):
        refuse(path, "core:metadata_only says that it has no samples")
    rate = overrides.instead("sample_rate_hz", metadata.get("core:sample_rate"))
    if not rate:
        refuse(path, "it lacks core:sample_rate: give sample_rate_hz")
    kind = numbers_of(metadata["core:datatype"])
    if kind is None:
        refuse(path, f"core:datatype is {schema.value_text(metadata['core:datatype'])}, must be {TYPES}")
    channels = overrides.channels(path, metadata.get("core:num_channels", 1))
    second = channels[1] if len(channels) == 2 else None
    layout = Layout(metadata.get("core:num_channels", 1), 1, kind[1], channels[0], numbers=kind[0], second=second)
    pieces = _pieces(path, captures, metadata.get("core:offset", 0), layout.sample_bytes)
    first = _index(captures[0])
    info = SampleInfo(
        layout.sample_bits, len(channels), rate, 1, first_timestamp=first, centre_frequency_hz=_centre(path, captures)
    )
    start = _start(path, captures, Fraction(rate), tell)
    if start is not None:
        info = replace(info, sync_time_unix=start.time)
    file, end = Bytes(path.with_suffix(DATA)), metadata.get("core:trailing_bytes", 0)
    with closed_on_error([file]):
        source = FlatSamples(file, overrides.over(info), layout, pieces, tell, end=end)
    tell_coarse(path, info, start if overrides.sync_time_unix is None else start_of(overrides.sync_time_unix), tell)
    return source


def _parsed(path: Path) -> object:
    try:
        return schema.parse(whole_content(path, MOST_META))
    except schema.Unsound as error:
        refuse(path, str(error))


def _index(capture: Capture) -> int:
    """Returns the time of a capture's first sample in the receiver's count."""
    index: int = capture.get("core:global_index", capture["core:sample_start"])
    return index


def _pieces(path: Path, captures: Sequence[Capture], offset: int, sample_bytes: int) -> list[FlatPiece]:
    """Returns the captures' places and times in the file. Captures without a gap between them become one piece."""
    if len(captures) > MOST_CAPTURES:
        refuse(path, f"it has {len(captures)} captures, more than {MOST_CAPTURES}: divide it")
    if captures[0]["core:sample_start"] < offset:
        refuse(path, f"its first capture begins before core:offset={offset}")
    pieces: list[FlatPiece] = []
    byte, zero = 0, _index(captures[0])
    for number, (capture, later) in enumerate(pairwise([*captures, {}])):
        byte += capture.get("core:header_bytes", 0)
        start, first = capture["core:sample_start"], _index(capture) - zero
        n = later["core:sample_start"] - start if later else None
        if n is not None and (n < 0 or _index(later) - zero < first + n):
            what = "core:sample_start" if n < 0 else "core:global_index"
            refuse(path, f"capture {number + 1} begins before the end of the one before: {what} is too small")
        here = byte + (start - offset) * sample_bytes
        last = pieces[-1] if pieces else None
        if (
            last is not None
            and last.n is not None
            and first == last.first + last.n
            and here == last.byte + last.n * sample_bytes
        ):
            pieces[-1] = replace(last, n=None if n is None else last.n + n)
        elif n != 0:
            pieces.append(FlatPiece(here, first, n))
    return pieces


def _centre(path: Path, captures: Sequence[Capture]) -> float | None:
    centres = [capture["core:frequency"] for capture in captures if "core:frequency" in capture]
    if len(set(centres)) > 1:
        other = min(set(centres) - {centres[0]})
        refuse(path, f"its captures have several frequencies, such as {centres[0]:g} and {other:g} Hz: divide it")
    return centres[0] if centres else None


def _start(path: Path, captures: Sequence[Capture], rate: Fraction, tell: Tell) -> Start | None:
    """Returns the time at which the receiver's count was 0, from the first datetime. ``tell`` takes a differing one."""
    starts, steps_s = [], []
    for capture in captures:
        if "core:datetime" not in capture:
            continue
        text = capture["core:datetime"]
        match = TIME.fullmatch(text)
        try:
            whole = datetime.fromisoformat(match[1] + match[3].upper()) if match else None
        except ValueError:
            whole = None
        if match is None or whole is None:
            value = schema.value_text(text)
            refuse(path, f"core:datetime is {value}, must be as 2026-01-02T03:04:05.678Z, or with +01:00 in place of Z")
        part = f"0{match[2] or '.'}"
        time = int(whole.timestamp()) + Fraction(part) - _index(capture) / rate
        starts.append(Start(time, f"core:datetime={text}", step_of(part)))
        steps_s.append(Fraction(1, 10 ** (len(part) - 2)))
    for other, step_s in zip(starts[1:], steps_s[1:], strict=True):
        apart_s = other.time - starts[0].time
        if abs(apart_s) > steps_s[0] + step_s + 1 / rate:
            line = f"{path}: {other.said} is {float(apart_s):.3g} s from the time that its samples count to"
            tell(one_line(f"{line}: only core:global_index makes a gap"))
            break
    return starts[0] if starts else None
