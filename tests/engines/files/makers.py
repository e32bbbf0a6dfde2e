"""Small recordings as other programs write them, by NumPy alone: what a test changes is an argument."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def dada(path: Path, samples: np.ndarray, said: Mapping[str, object]) -> None:
    """Writes int8 [n, channel, polarisation, part], or in another order, behind a header that says so."""
    shape = dict(zip(("NCHAN", "NPOL", "NDIM"), samples.shape[1:], strict=True))
    fields = {"HDR_VERSION": "1.0", "HDR_SIZE": 4096, "NBIT": 8, **shape, "TELESCOPE": "PKS", **said}
    text = "".join(f"{name} {value}\n" for name, value in fields.items() if value is not None)
    path.write_bytes(text.encode().ljust(4096, b"\0") + samples.astype(np.int8).tobytes())


def guppi(path: Path, blocks: Sequence[np.ndarray], indices: Sequence[int], said: Mapping[str, object]) -> None:
    """Writes blocks, int8 [channel, n, polarisation, part], with these PKTIDX."""
    with path.open("wb") as file:
        for block, index in zip(blocks, indices, strict=True):
            n_channels, _, n_pols, _ = block.shape
            fields = {"OBSNCHAN": n_channels, "NPOL": 2 * n_pols, "NBITS": 8, "OVERLAP": 0, "TELESCOP": "GBT"}
            fields |= {"BLOCSIZE": block.size, "PKTIDX": index, "PKTSIZE": block.size, "PKTFMT": "1SFA", **said}
            file.write("".join(card(name, value) for name, value in fields.items() if value is not None).encode())
            file.write(b"END".ljust(80) + block.astype(np.int8).tobytes())


def card(name: str, value: object) -> str:
    text = f"'{value:<8}'" if isinstance(value, str) else f"{value:>20}"
    return f"{name:<8}= {text}".ljust(80)


def vdif_frame(
    payload: bytes,
    seconds: int,
    number: int,
    *,
    thread: int = 0,
    epoch: int = 50,
    bits: int = 8,
    n_channels: int = 1,
    is_complex: bool = False,
    station: str = "On",
) -> bytes:
    """Returns a frame whose extended data say nothing."""
    words = [
        seconds,
        number | epoch << 24,
        (len(payload) + 32) // 8 | (n_channels.bit_length() - 1) << 24 | 1 << 29,
        ord(station[0]) << 8 | ord(station[1]) | thread << 16 | (bits - 1) << 26 | is_complex << 31,
    ]
    return struct.pack("<8I", *words, 0, 0, 0, 0) + payload
