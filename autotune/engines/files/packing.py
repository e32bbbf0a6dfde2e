"""Packs integers into samples of a few bits, and swaps the nibbles of bytes."""

import numpy as np


def pack_samples(samples: np.ndarray, bits: int) -> np.ndarray:
    """Packs integers for ``core.packed_samples.unpack_samples``. Each row begins at a whole byte.

    Args:
        samples: int16 [.., n]; each fits in ``bits`` (2 to 16).

    Returns:
        uint8 [.., ceil(n bits / 8)].
    """
    n = samples.shape[-1]
    if n % 8:
        samples = np.concatenate([samples, np.zeros((*samples.shape[:-1], -n % 8), samples.dtype)], axis=-1)
    packed = np.zeros((*samples.shape[:-1], samples.shape[-1] * bits // 8), np.uint8)
    for i in range(8):
        byte, bit = divmod(i * bits, 8)
        field = (samples[..., i::8].view(np.uint16) & np.uint16(2**bits - 1)).astype(np.uint32)
        field <<= np.uint32(24 - bits - bit)
        for k in range(-(-(bit + bits) // 8)):
            packed[..., byte + k :: bits] |= (field >> np.uint32(16 - 8 * k)).astype(np.uint8)
    return packed[..., : -(-n * bits // 8)]


def nibbles_changed(raw: np.ndarray) -> np.ndarray:
    """Returns bytes, uint8 or int8 of any shape, with their nibbles swapped: uint8."""
    some = raw.view(np.uint8)
    return np.asarray(some >> 4 | some << 4)
