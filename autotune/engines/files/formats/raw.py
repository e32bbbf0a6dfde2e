"""Samples of any kind, with a header in TOML in the same folder.

    file = "m000.bin"               # a file in the header's folder
    sample_bits = 10                # 2 to 16: packed two's complement, most significant bit first; 64: complex float32
    n_pols = 2
    n_samples = 1048576             # of each polarisation; without it, it follows from the file's length
    sample_rate_hz = 1712e6
    first_timestamp = 4096          # time of the first sample, in samples since sync_time_unix; 0 without it
    missing = [[1, 4096, 300]]      # polarisation, first sample in its row, and number of samples that never came

Instead of ``sample_bits`` it may have ``sample_type``, with the names of SigMF ("ci16_le", complex int16). Then samples
of two polarisations alternate, as ``tofile`` and software radios write them.

With ``sample_bits`` polarisations lie one after the other. Each row starts at a whole byte. With ``n_samples`` the rows
have their final places from the start, so a file that is still being written, or was cut off, can be read as far as its
last row goes, which is written last.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ....core import schema
from ....core.errors import UsageError
from ....core.files import write_whole
from ...streams.samples import COMPLEX_BITS, SampleInfo
from ...streams.times import stored_time
from .. import checks
from ..appended_file import put
from ..flat import FlatPiece, FlatSamples
from ..interleaved_bytes import Layout, PackedLayout
from ..numbers import INT8, TYPES, numbers_of
from ..reading import Bytes, HeaderOverrides, Tell, closed_on_error, refuse, refuse_existing, start_of, tell_coarse
from ..statements import contradicted
from ..toml import checked, read_toml, written
from ..turned import LOWER, SIDEBANDS
from .interface import SAMPLES

suffixes, holds, help = (".toml",), SAMPLES, "a TOML header of samples"
MOST_HEADER = 1 << 16  # bytes


HEADER = schema.members_of(
    {
        "file": checks.beside,
        **checks.CHECKS,
        "sample_type": schema.as_word,
        "sideband": schema.one_of(SIDEBANDS),
        "missing": schema.sequence_of(schema.sequence_of(checks.integer(0, checks.MOST_TIME), 3)),
    },
    needed=("file", "n_pols", "sample_rate_hz"),
)


def recognises(file: Bytes) -> bool:
    """Returns whether a file is a header, by its name."""
    return file.path.suffix in suffixes


def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> FlatSamples:
    """Opens a recording by its header, ``path``.

    Raises:
        UsageError: when the header is wrong, or its file does not exist.
    """
    content = read_toml(path, MOST_HEADER)
    header = checked(path, "the header", HEADER, content)
    if ("sample_bits" in header) == ("sample_type" in header):
        which = "both" if "sample_bits" in header else "neither"
        refuse(path, f"it must have either sample_bits or sample_type, but has {which}")
    source = _source(path, header, overrides, tell)
    time = overrides.sync_time_unix if overrides.sync_time_unix is not None else content.get("sync_time_unix")
    tell_coarse(path, source.info, None if time is None else start_of(time), tell)
    return source


def _source(header: Path, content: dict[str, Any], overrides: HeaderOverrides, tell: Tell) -> FlatSamples:
    """Opens samples of the header's ``sample_type``, or packed ones of ``sample_bits``."""
    bits, n_pols, n_samples = content.get("sample_bits"), content["n_pols"], content.get("n_samples")
    kind = numbers_of(content["sample_type"]) if bits is None else (INT8, bits == COMPLEX_BITS)
    if kind is None:
        refuse(header, f"sample_type is {schema.value_text(content['sample_type'])}, must be {TYPES}")
    layout = Layout(1, n_pols, kind[1], 0, numbers=kind[0])
    file, missing, row_bytes = Bytes(header.with_name(content["file"])), content.get("missing", ()), 0
    with closed_on_error([file]):
        if bits is not None:
            layout = PackedLayout(1, 1, kind[1], 0, bits=bits)
            if n_samples is None and n_pols > 1:
                n_bytes, rest = divmod(file.size(), n_pols)
                if rest:
                    refuse(
                        file.path, f"it has {file.size()} bytes, which {n_pols} polarisations of one length cannot fill"
                    )
                n_samples = n_bytes * 8 // bits
            row_bytes = layout.bytes_of(n_samples or 0) if n_pols > 1 else 0
        said = {field.name: content[field.name] for field in fields(SampleInfo) if field.name in content}
        info = overrides.over(SampleInfo(**{**said, "sample_bits": layout.sample_bits, "packet": 1}))
        if content.get("n_samples"):
            _check_length(header, content, file.size(), overrides, tell)
        source = FlatSamples(file, info, layout, [FlatPiece(0, 0, n_samples)], tell, row_bytes, missing=missing)
        _check_missing(header, missing, source.info)
    source.falls = f"sideband={LOWER}" if content.get("sideband") == LOWER else ""
    return source


def _check_length(header: Path, content: dict[str, Any], size: int, overrides: HeaderOverrides, tell: Tell) -> None:
    """Raises UsageError for bits of a sample that the file's length contradicts: with others it is right to the byte.

    A file that was cut off, or has other data at its end, has such a length only by chance.
    """
    kind = numbers_of(content["sample_type"]) if "sample_type" in content else None
    stated = content.get("sample_bits") or (kind[0].bits * (1 + kind[1]) if kind else 0)
    n_rows, n_samples = content["n_pols"], content["n_samples"]
    of_bits = {bits: n_rows * -(-n_samples * bits // 8) for bits in (*range(2, 17), 32, 64, 128)}
    told = [bits for bits, n_bytes in of_bits.items() if n_bytes == size]
    if told and stated not in told:
        has = f"n_samples={n_samples} of {n_rows} polarisations of {stated} bits are {of_bits.get(stated)} bytes"
        contradicted(header, overrides, f"{has}, but its file has {size}, as {told[0]} bits make", tell)


def _check_missing(header: Path, missing: Sequence[Sequence[int]], info: SampleInfo) -> None:
    """Raises UsageError for missing samples that the recording does not have."""
    for number, (pol, first, n) in enumerate(missing, 1):
        if pol >= info.n_pols or not n or first + n > (info.n_samples or 0):
            refuse(
                header,
                f"missing has [{pol}, {first}, {n}] as number {number}: there are {info.n_pols} polarisations of "
                f"{info.n_samples} samples, of which 1 or more can be missing",
            )


class RawFile:
    """Writes packed samples chunk by chunk, and their header.

    The header is written first, and each chunk at its final place, so the file can be read at any time as far as it was
    written.

    Args:
        header: the path of the header, ``x.toml``; the samples go to ``x.bin`` in its folder. Neither may exist.
        info: the samples' header; it must have ``n_samples``, which decides the places of rows.
        missing: (polarisation, first sample in its row, number of samples) that never came. They are written, too, with
            any content.

    Raises:
        UsageError: when the files cannot be made, or exist.
    """

    def __init__(self, header: Path, info: SampleInfo, missing: Sequence[tuple[int, int, int]] = ()) -> None:
        if info.n_samples is None:
            refuse(header, "n_samples must be known, since the polarisations lie one after the other")
        self.path, self.info = header.with_suffix(".bin"), info
        self._row_bytes = -(-info.n_samples * info.sample_bits // 8)
        self._done = 0  # bytes of each polarisation
        if header.suffix != ".toml":
            refuse(header, "the header's name must end in .toml")
        if header.exists():
            refuse_existing(header)
        text = header_text(self.path.name, info, missing)
        _check_missing(header, checked(header, "the header", HEADER, tomllib.loads(text)).get("missing", ()), info)
        if len(text.encode()) > MOST_HEADER:
            refuse(header, f"{len(missing)} missing ranges make it longer than {MOST_HEADER} bytes: join some")
        try:
            self._file = open(self.path, "xb", buffering=0)  # noqa: SIM115
            write_whole(header, text.encode())
        except FileExistsError:
            refuse_existing(self.path)
        except OSError as error:
            refuse(error.filename or header, f"it cannot be made: {error.strerror}")

    def write(self, samples: np.ndarray) -> None:
        """Append uint8 [n_pols, n_bytes], or complex64 [n_pols, n_samples]; the last chunk may end in unused bits.

        Raises:
            UsageError: when it cannot be stored, for example on a full disk; earlier chunks can be read.
        """
        if (
            samples.ndim != 2
            or len(samples) != self.info.n_pols
            or samples.itemsize != (8 if self.info.is_complex else 1)
        ):
            raise UsageError(f"{self.path} takes chunks [{self.info.n_pols}, n], not {samples.dtype} {samples.shape}")
        rows = np.ascontiguousarray(samples).view(np.uint8)
        if self._done + rows.shape[1] > self._row_bytes:
            refuse(self.path, f"more than n_samples={self.info.n_samples} samples were written to it")
        try:
            for pol, row in enumerate(rows):  # the last row is written last, so the others are as long
                put(self._file, row.data, pol * self._row_bytes + self._done)
        except OSError as error:
            n = self._done * 8 // self.info.sample_bits
            refuse(self.path, f"it cannot be written: {error.strerror}; the first {n} samples of each row are there")
        self._done += rows.shape[1]

    def close(self) -> None:
        self._file.close()


def header_text(file: str, info: SampleInfo, missing: Sequence[tuple[int, int, int]]) -> str:
    """Returns the header for samples in ``file``, as TOML."""
    header: dict[str, object] = {
        "file": file,
        "sample_bits": info.sample_bits,
        "n_pols": info.n_pols,
        "n_samples": info.n_samples,
        "sample_rate_hz": float(info.sample_rate_hz),
        "first_timestamp": info.first_timestamp,
        "antenna": info.antenna or None,
        "position_m": info.position_m and [float(x) for x in info.position_m],
        "centre_frequency_hz": info.centre_frequency_hz,
        "sync_time_unix": None if info.sync_time_unix is None else stored_time(info.sync_time_unix),
        "missing": [list(each) for each in missing] or None,
    }
    return "".join(written(name, value) for name, value in header.items() if value is not None)
