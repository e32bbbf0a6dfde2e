"""What each kernel of *.cu here makes of x, which holds the numbers 0 to 127, in 2 blocks of 64 threads."""

from collections.abc import Callable

import ml_dtypes
import numpy as np

N = 128
X = np.arange(N, dtype=np.float32)
INDEX = np.arange(N)
LINE = INDEX % 64
REVERSED = X.reshape(2, 64)[:, ::-1].ravel()


def _tiles(size: int) -> np.ndarray:
    return X.reshape(-1, size)


def _over(values: np.ndarray, size: int) -> np.ndarray:
    """Each value for all threads of a group of ``size``."""
    return np.repeat(values, size)


def _shuffles() -> np.ndarray:
    sums = _over(_tiles(32).sum(1), 32)
    down = np.where(INDEX % 32 < 31, np.minimum(X + 1, N - 1), X)
    up = np.where(INDEX % 8 >= 2, X - 2, X)
    return sums + down + up + _over(_tiles(32)[:, 5], 32)


def _warp_reductions() -> np.ndarray:
    warps = INDEX.reshape(-1, 32)
    return _over(warps.sum(1) + warps.max(1) + np.bitwise_or.reduce(warps, axis=1), 32)


def _tiles_of_eight() -> np.ndarray:
    down = np.where(INDEX % 8 < 7, np.minimum(X + 1, N - 1), X)
    return _over(_tiles(8).sum(1), 8) + down + LINE // 8 + 10 * (INDEX % 8)


def _votes(size: int) -> np.ndarray:
    large = _tiles(size) > 40
    return _over(large.sum(1) + 100 * large.any(1) + 200 * large.all(1), size)


def _coalesced() -> np.ndarray:
    result = np.full(N, -1.0)
    for warp in range(4):
        lanes = np.flatnonzero((warp == INDEX // 32) & (X > 40))
        if lanes.size:
            result[lanes] = lanes.size + X[lanes[0]]
    return result


def _fibonacci() -> np.ndarray:
    return np.array([0, 1, 1, 2, 3, 5, 8, 13])[INDEX % 8]


def _bits() -> np.ndarray:
    reversed_7 = np.array([int(f"{v:07b}"[::-1], 2) for v in INDEX])
    popc = np.array([int(v).bit_count() for v in INDEX])
    clz = np.array([32 - int(v).bit_length() for v in INDEX])
    ffs = np.array([(int(v) & -int(v)).bit_length() for v in INDEX])
    return popc + 10 * clz + 1000 * ffs + 32 * reversed_7


def _atomic_bits() -> np.ndarray:
    blocks = INDEX.reshape(2, 64)
    both = [np.bitwise_and.reduce(blocks, axis=1) & 255, np.bitwise_or.reduce(blocks, axis=1)]
    return _over(both[0] + 256 * both[1] + 65536 * np.bitwise_xor.reduce(blocks, axis=1), 64)


def _halves() -> np.ndarray:
    v = X.astype(np.float16)
    low, high = v * np.float16(2) + np.float16(1), v * np.float16(3) + np.float16(1)
    return low.astype(np.float32) + (high + v * np.float16(0.5)).astype(np.float32)  # exact, by one rounding or two


def _bfloat16s() -> np.ndarray:
    v = (X * np.float32(1.01)).astype(ml_dtypes.bfloat16).astype(np.float32)
    return (2 * v).astype(ml_dtypes.bfloat16).astype(np.float32) + (v / 2).astype(ml_dtypes.bfloat16).astype(np.float32)


def _matrices() -> np.ndarray:
    a = (X[np.arange(256) % 8] * (np.arange(256) % 3)).reshape(16, 16)
    return (a @ a.T + 1).ravel()[:N]


def _special() -> np.ndarray:
    odd = INDEX % 2
    return odd * (1 + 2) + (1 - odd) * 4 + 8


def _atomic_add() -> np.ndarray:
    return np.concatenate([X.reshape(-1, 4).sum(0), np.zeros(N - 4)])


def _first_two(values: list[float]) -> np.ndarray:
    return np.concatenate([values, np.zeros(N - 2)])


EXPECTED: dict[str, Callable[[], np.ndarray]] = {
    "templates": lambda: 3 * X,
    "lambdas": lambda: 2 * X + 1,
    "constexpr_if": lambda: 3 * X,
    "structured_bindings": lambda: X,
    "fold_expressions": lambda: 3 * X + 1,
    "variadic_templates": lambda: np.maximum(X, 0.5),
    "function_objects": lambda: 2 * X + 1,
    "virtual_functions": lambda: np.where(INDEX % 2, X, X * X),
    "unions": lambda: -X,
    "bit_fields": lambda: X,
    "aligned_types": lambda: X * 256,
    "recursion": _fibonacci,
    "function_pointers": lambda: np.where(INDEX % 2, 2 * X, X + 1),
    "static_variables": lambda: X,
    "namespaces_and_enums": lambda: np.where(INDEX % 2, -X, X),
    "operators": lambda: 2 * X + 2,
    "overloads_of_cudas": lambda: 0.5 * np.minimum(X, 0.5),
    "called_alike": lambda: X + 1,
    "launch_bounds": lambda: 8 * X,
    "assumptions": lambda: np.where(INDEX > 3, X, -X),
    "static_shared": lambda: REVERSED,
    "dynamic_shared": lambda: REVERSED,
    "dynamic_shared_of_a_template": lambda: REVERSED,
    "constant_memory": lambda: X * (INDEX % 4 + 1),
    "device_variables": lambda: X + 1,
    "grid_constants": lambda: 2 * X + 3,
    "vector_loads": lambda: X.reshape(-1, 4)[:, ::-1].ravel(),
    "cache_hints": lambda: 4 * X,
    "bytes": lambda: X,
    "pipelines": lambda: REVERSED,
    "group_memcpy_async": lambda: REVERSED,
    "fences": lambda: X + 1,
    "atomic_add": _atomic_add,
    "atomic_add_of_doubles": lambda: _over(_tiles(64).sum(1), 64),
    "atomic_cas": lambda: _first_two([126, 127]),
    "atomic_min_max": lambda: _over(_tiles(64).min(1) + 0.5 * _tiles(64).max(1), 64),
    "atomic_bits": _atomic_bits,
    "atomic_exchange": lambda: X,
    "atomic_inc_dec": lambda: X + 64 % 10 + 16 * (-64 % 10),
    "atomic_64_bits": lambda: _over(_tiles(64).sum(1), 64),
    "atomic_of_a_block": lambda: _over(_tiles(64).sum(1), 64),
    "block_votes": lambda: _over(np.array([31 + 100, 64 + 100 + 200]), 64),
    "warp_votes": lambda: _votes(32),
    "shuffles": _shuffles,
    "matches": lambda: INDEX % 4 + 1 + 100,
    "warp_reductions": _warp_reductions,
    "active_masks": lambda: X + 1,
    "warp_barriers": lambda: X[INDEX ^ 1],
    "sleep_and_clock": lambda: X + 1,
    "thread_blocks": lambda: REVERSED,
    "tiles": _tiles_of_eight,
    "tile_votes": lambda: _votes(16),
    "coalesced_groups": _coalesced,
    "group_reductions": lambda: _over(_tiles(32).sum(1) + _tiles(32).max(1), 32),
    "group_scans": lambda: _tiles(32).cumsum(1).ravel(),
    "bit_counts": _bits,
    "byte_selection": lambda: 1792 + 2 * X,
    "dot_products_of_bytes": lambda: 10 * X + 5,
    "integer_intrinsics": lambda: 3 * INDEX + INDEX + np.abs(INDEX - 10) + 1 + (INDEX + 1) // 2,
    "vector_types": lambda: X + 3 + 2 + 0.75 + 12,
    "halves": _halves,
    "bfloat16s": _bfloat16s,
    "complex_numbers": lambda: X * X + 1 + 2 + 1,
    "printing": lambda: X,
    "assertions": lambda: X,
    "special_numbers": _special,
    "mathematics": lambda: 1 + 1 / np.sqrt(X + 1) + 2 * X + 1 + 8,
    "rounded_operations": lambda: 3.1 * X + 1 + 1 / 3,
    "c_headers": lambda: X + np.pi + 3,
    "matrices": _matrices,
}
