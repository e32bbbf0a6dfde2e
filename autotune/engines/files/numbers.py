"""The numbers in files: their layout in bytes, and their conversion to the samples of a source."""

import re
from dataclasses import dataclass

import numpy as np

from ..streams.samples import COMPLEX_BITS

TYPE = re.compile(r"([rc])([iuf])(8|16|32|64)(?:_(le|be))?")
TYPES = "r or c, then i8, u8, i16, u16, i32, u32, f32 or f64, then _le or _be unless i8 or u8, such as ci16_le"
MOST_REAL = 16  # the most bits of a source's real samples
NOT_FINITE = -(2**15)  # the real sample for a number that is not finite; all other samples are larger


@dataclass(frozen=True)
class Numbers:
    """Numbers of one kind: int8, int16 in either byte order, float32 and others, or two 4-bit numbers in a byte.

    Unsigned numbers are offset binary: half of their range means 0. Real numbers of more than 16 bits are multiplied
    by ``scale``, and rounded to 16 bits.
    """

    kind: np.dtype
    nibbles: bool = False  # two's complement of 4 bits, the first one in the high nibble
    scale: float = 1.0

    @property
    def bits(self) -> int:
        return 4 if self.nibbles else 8 * self.kind.itemsize

    @property
    def is_wide(self) -> bool:
        """Returns whether real numbers of this kind do not fit into 16 bits unchanged."""
        return self.kind.kind == "f" or self.bits > MOST_REAL

    def sample_bits(self, is_complex: bool) -> int:
        """Returns the bits of a sample made of such numbers, for SampleInfo."""
        return COMPLEX_BITS if is_complex else min(self.bits, MOST_REAL) if not self.is_wide else MOST_REAL

    def of(self, raw: np.ndarray) -> np.ndarray:
        """Returns the signed numbers [n] in uint8 [n_bytes]."""
        if self.nibbles:
            return np.stack([raw.view(np.int8) >> 4, (raw << 4).view(np.int8) >> 4], axis=-1).reshape(-1)
        numbers = raw.view(self.kind)
        if self.kind.kind != "u":
            return numbers
        half = self.kind.type(1 << self.bits - 1)
        return np.asarray((numbers ^ half).view(f"i{self.kind.itemsize}"))  # in this machine's byte order

    def put(self, numbers: np.ndarray, out: np.ndarray) -> None:
        """Converts numbers [n_pols, n, parts] from ``of`` into the rows of a source: uint8 or complex64 [n_pols, ..].

        It does not take real numbers of 4 bits.
        """
        if numbers.shape[-1] == 2:
            with np.errstate(over="ignore", invalid="ignore"):
                out.view(np.float32).reshape(*out.shape, 2)[...] = numbers
        elif self.is_wide:
            scaled = np.rint(numbers[..., 0] * np.float64(self.scale))
            fitting = scaled.clip(1 + NOT_FINITE, -1 - NOT_FINITE)
            out.view(">i2")[...] = np.where(np.isfinite(scaled), fitting, NOT_FINITE)
        else:
            out.view(f">i{self.bits // 8}")[...] = numbers[..., 0]


INT8 = Numbers(np.dtype(np.int8))


def numbers_of(name: str) -> tuple[Numbers, bool] | None:
    """Returns the numbers for a name as in SigMF (ci16_le), and whether samples are complex.

    Returns None for an unknown name, and for numbers of several bytes without a byte order.
    """
    match = TYPE.fullmatch(name)
    if match is None or (match[3] != "8" and match[4] is None) or (match[2], match[3]) == ("f", "8"):
        return None
    if (match[3] == "64" and match[2] != "f") or (match[2], match[3]) == ("f", "16"):
        return None
    order = {"le": "<", "be": ">", None: "|"}[match[4]]
    return Numbers(np.dtype(f"{order}{match[2]}{int(match[3]) // 8}")), match[1] == "c"
