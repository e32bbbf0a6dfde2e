"""Unpacks packed samples with NumPy, for definitions of kernels that unpack them on the device."""

import numpy as np


def unpack_samples(row: np.ndarray, bits: int, first: int, n_samples: int) -> np.ndarray:
    """Returns the samples of a packed row from ``first`` on; samples past its end are 0.

    Samples are two's complement, ``bits`` wide (2 to 16); the first is in the most significant bits of the first byte.
    Every eighth sample starts at the same bit of a byte, so one step reads all samples i, i + 8, i + 16 ...

    Args:
        row: uint8 [n_bytes].

    Returns:
        float64 [n_samples], exact.
    """
    skipped = first % 8
    n_groups = -(-(skipped + n_samples) // 8)
    packed = np.zeros(n_groups * bits + 2, np.uint32)
    groups = row[first // 8 * bits :][: n_groups * bits]
    packed[: groups.size] = groups
    samples = np.empty((n_groups, 8))
    for i in range(8):
        byte, bit = divmod(i * bits, 8)
        b = [packed[byte + k :: bits][:n_groups] for k in range(3)]
        field = (b[0] << 16 | b[1] << 8 | b[2]) >> np.uint32(24 - bits - bit) & np.uint32(2**bits - 1)
        samples[:, i] = (field ^ np.uint32(2 ** (bits - 1))).astype(np.int32) - 2 ** (bits - 1)
    return samples.reshape(-1)[skipped : skipped + n_samples]
