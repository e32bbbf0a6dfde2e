"""CUDA, as the devices must speak it: the same kernels and NumPy expectations on each, the GPU included."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autotune import Launch, TensorMap, ceil_div

from .bench import TEXTS, Bench, with_library

pytestmark = pytest.mark.quick

N = 5000  # no multiple of a block
U32 = 2**32 - 1


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def over(n: int, width: int = 128) -> Launch:
    return Launch((ceil_div(n, width), 1, 1), (width, 1, 1))


def run_all(bench: Bench, kernel: str, arguments: dict[str, Any], launch: Launch, *outputs: str, **more: Any) -> Any:
    """The outputs, which every build and schedule must agree on."""
    results = []
    for build in bench.builds:
        for seed in (0, 1, 2, 3):
            got = bench.run(kernel, arguments, launch, build=build, outputs=outputs, seed=seed, **more)
            results.append([got[name] for name in outputs])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    return results[0][0] if len(outputs) == 1 else results[0]


def words(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 2**32, n, dtype=np.uint32)


def byte_perm(a: int, b: int, selector: int) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    result = []
    for i in range(4):
        result.append(source[selector >> 4 * i & 7])
    return int.from_bytes(bytes(result), "little")


def test_integers(bench: Bench, rng: np.random.Generator) -> None:
    a, b, c = words(rng, N), words(rng, N), words(rng, N)
    a[:3] = 0, U32, 2**31
    arguments = {"out": np.zeros((16, N), np.uint32), "a": a, "b": b, "c": c, "n": np.int32(N)}
    out = run_all(bench, "integers", arguments, over(N), "out")
    x, y, z = (v.astype(object) for v in (a, b, c))  # Python's integers: exact
    sx, sy, sz = (v.view(np.int32).astype(object) for v in (a, b, c))
    both = [v << 32 | u for u, v in zip(x, y, strict=True)]
    signed = [v.view(np.int8).reshape(N, 4).astype(int) for v in (a, b)]
    plain = [v.view(np.uint8).reshape(N, 4).astype(int) for v in (a, b)]
    shift = c % 32
    clamped = np.minimum(c % 64, 32)
    expected = [
        [byte_perm(u, v, w & 0x7777) for u, v, w in zip(x, y, z, strict=True)],
        [byte_perm(u, v, w & 0xFFFF) for u, v, w in zip(x, y, z, strict=True)],
        [v << int(s) >> 32 & U32 for v, s in zip(both, shift, strict=True)],
        [v >> int(s) & U32 for v, s in zip(both, shift, strict=True)],
        [v << int(s) >> 32 & U32 for v, s in zip(both, clamped, strict=True)],
        [v >> int(s) & U32 for v, s in zip(both, clamped, strict=True)],
        (sz + (signed[0] * signed[1]).sum(axis=1)) & U32,
        (z + (plain[0] * plain[1]).sum(axis=1)) & U32,
        [u.bit_count() for u in x],
        [32 - (u >> int(s)).bit_length() for u, s in zip(x, shift, strict=True)],
        [(v & -v).bit_length() for v in (u << int(s) & U32 for u, s in zip(x, shift, strict=True))],
        [int(f"{u:032b}"[::-1], 2) for u in x],
        (x * y) >> 32,
        ((sx * sy) >> 32) & U32,
        np.maximum(sx, sy) & U32,
        np.minimum(x, y),
    ]
    for row, values in enumerate(expected):
        np.testing.assert_array_equal(out[row], np.array(list(values), np.uint32), err_msg=f"row {row}")


COMPARED = {"eq": np.equal, "ne": np.not_equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal}
COMPARED["lt"] = np.less
Lanes = tuple[str, Callable[..., np.ndarray]]  # signed (s) or unsigned (u), and the result, which wraps
LANES: dict[str, Lanes] = {
    "vadd": ("u", lambda x, y, least, most: x + y),
    "vsub": ("u", lambda x, y, least, most: x - y),
    "vaddus": ("u", lambda x, y, least, most: np.clip(x + y, least, most)),
    "vsubus": ("u", lambda x, y, least, most: np.clip(x - y, least, most)),
    "vaddss": ("s", lambda x, y, least, most: np.clip(x + y, least, most)),
    "vsubss": ("s", lambda x, y, least, most: np.clip(x - y, least, most)),
    "vabsdiffu": ("u", lambda x, y, least, most: abs(x - y)),
    "vabsdiffs": ("s", lambda x, y, least, most: abs(x - y)),
    "vmaxu": ("u", lambda x, y, least, most: np.maximum(x, y)),
    "vminu": ("u", lambda x, y, least, most: np.minimum(x, y)),
    "vmaxs": ("s", lambda x, y, least, most: np.maximum(x, y)),
    "vmins": ("s", lambda x, y, least, most: np.minimum(x, y)),
    "vhaddu": ("u", lambda x, y, least, most: (x + y) // 2),
    "vavgu": ("u", lambda x, y, least, most: (x + y + 1) // 2),
    "vneg": ("s", lambda x, y, least, most: -x),
    "vnegss": ("s", lambda x, y, least, most: np.clip(-x, least, most)),
    "vabs": ("s", lambda x, y, least, most: abs(x)),
    "vabsss": ("s", lambda x, y, least, most: np.clip(abs(x), least, most)),
}
for op, compared in COMPARED.items():
    for sign in ("", "s", "u"):
        LANES[f"vset{op}{sign}"] = sign or "u", lambda x, y, *_, of=compared: of(x, y)
        LANES[f"vcmp{op}{sign}"] = sign or "u", lambda x, y, *_, of=compared: -1 * of(x, y)


def test_lanes(bench: Bench, rng: np.random.Generator) -> None:
    a, b = words(rng, N), words(rng, N)
    a[:4], b[:4] = (0x80008000, 0x80808080, 0x7FFF8000, 0), (0x80008000, 0x80808080, 0x80007FFF, U32)
    functions = re.findall(r"(?:BOTH|ONE)\(__(\w+)\)", (TEXTS / "lanes.cu").read_text())
    arguments = {"out": np.zeros((2 * len(functions), N), np.uint32), "a": a, "b": b, "n": np.int32(N)}
    out = run_all(bench, "lanes", arguments, over(N), "out")
    for row, found in enumerate(out):
        name, n_lanes = functions[row // 2], 2 << row % 2
        sign, function = LANES.get(name, (name[-1], lambda x, y, *_: abs(x - y)))  # vsadu and vsads: a sum of them
        lanes = np.dtype(f"{'i' if sign == 's' else 'u'}{4 // n_lanes}")
        x, y = (each.view(lanes).reshape(N, n_lanes).astype(np.int64) for each in (a, b))
        expected = function(x, y, np.iinfo(lanes).min, np.iinfo(lanes).max)
        whole = expected.astype(f"u{4 // n_lanes}").reshape(-1).view(np.uint32)
        np.testing.assert_array_equal(found, expected.sum(axis=1) if name not in LANES else whole, f"{name}{n_lanes}")


def test_wide_integers(bench: Bench, rng: np.random.Generator) -> None:
    a, b = (rng.integers(0, 2**64, N, dtype=np.uint64) for _ in range(2))
    a[:2] = 0, 2**64 - 1
    arguments = {"out": np.zeros((6, N), np.uint64), "a": a, "b": b, "n": np.int32(N)}
    out = run_all(bench, "wide_integers", arguments, over(N), "out")
    x, y = a.astype(object), b.astype(object)
    sx, sy = a.view(np.int64).astype(object), b.view(np.int64).astype(object)
    expected = [
        (x * y) >> 64,
        ((sx * sy) >> 64) % 2**64,
        [u.bit_count() for u in x],
        [64 - (u >> (v % 64)).bit_length() for u, v in zip(x, y, strict=True)],
        [int(f"{u:064b}"[::-1], 2) for u in x],
        x * y % 2**64,
    ]
    for row, values in enumerate(expected):
        np.testing.assert_array_equal(out[row], np.array(list(values), np.uint64), err_msg=f"row {row}")


def test_conversions(bench: Bench, rng: np.random.Generator) -> None:
    values = (rng.normal(size=N) * 10.0 ** rng.uniform(-3, 12, N)).astype(np.float32)
    values[:9] = 0.5, 1.5, 2.5, -0.5, -1.5, np.inf, -np.inf, np.nan, 2.0**31
    arguments = {"out": np.zeros((8, N), np.int32), "in": values, "n": np.int32(N)}
    out = run_all(bench, "conversions", arguments, over(N), "out")
    exact = values.astype(np.float64)

    def saturated(v: np.ndarray, low: int, high: int, of_nan: int = 0) -> np.ndarray:
        return np.where(np.isnan(v), of_nan, np.clip(v, low, high)).astype(np.int64)

    for row, rounding in enumerate((np.rint, np.trunc, np.floor, np.ceil)):
        np.testing.assert_array_equal(out[row], saturated(rounding(exact), -(2**31), 2**31 - 1), err_msg=f"row {row}")
    np.testing.assert_array_equal(out[4].view(np.uint32), saturated(np.rint(exact), 0, U32))
    for row in (5, 6):
        np.testing.assert_array_equal(out[row], values.view(np.int32))
    np.testing.assert_array_equal(out[7], saturated(np.rint(exact * 0.5), -(2**31), 2**31 - 1, -(2**31)))


def test_mathematics(bench: Bench, rng: np.random.Generator) -> None:
    x, y = (rng.uniform(-40, 40, N).astype(np.float32) for _ in range(2))
    x[:6] = 0.0, 0.5, 1.0, -0.5, 1.5, 2.0**20 + 0.5
    arguments = {"out": np.zeros((10, N), np.float32), "x": x, "y": y, "n": np.int32(N)}
    out = run_all(bench, "mathematics", arguments, over(N), "out")
    exact_x, exact_y = x.astype(np.float64), y.astype(np.float64)
    product = exact_x * exact_y  # exact: 24 bits by 24
    expected = [
        np.sin(np.pi * (exact_x % 2)),
        np.cos(np.pi * (exact_x % 2)),
        product + 1,
        product - 1,
        1 / np.sqrt(np.abs(exact_x) + 1),
        np.sqrt(np.abs(exact_x)),
        np.rint(exact_x),
        np.maximum(exact_x, exact_y),
        np.sin(np.pi * (exact_y % 2)),
        np.ones(N),
    ]
    eps = np.finfo(np.float32).eps
    for row, values in enumerate(expected):  # CUDA states at most 2 ulp for each of these
        np.testing.assert_allclose(out[row], values, rtol=2 * eps, atol=2 * eps, err_msg=f"row {row}")
    np.testing.assert_array_equal(out[0, :6], [0, 1, 0, -1, -1, 1])  # quarters of a turn are exact
    np.testing.assert_array_equal(out[1, :6], [1, 0, -1, 0, 0, 0])


@pytest.mark.parametrize("width", [32, 16, 8, 4, 2])
def test_shuffles(bench: Bench, width: int) -> None:
    thread = np.arange(64)
    lane = thread % 32
    first, last = lane & ~(width - 1), lane | (width - 1)
    for argument in (0, 1, 3, 5, 17, 31):
        arguments = {"out": np.zeros((4, 64), np.int32), "width": np.int32(width), "argument": np.int32(argument)}
        build = bench.builds[argument % len(bench.builds)]
        launch = Launch((1, 1, 1), (64, 1, 1))
        out = bench.run("shuffles", arguments, launch, build=build, outputs=["out"], seed=argument)["out"]
        sources = [
            first | argument % width,
            np.where(lane - argument < first, lane, lane - argument),
            np.where(lane + argument > last, lane, lane + argument),
            np.where(lane ^ argument > last, lane, lane ^ argument),
        ]
        np.testing.assert_array_equal(out, [thread - lane + source for source in sources])


def test_reduction(bench: Bench, rng: np.random.Generator) -> None:
    values = rng.normal(size=256).astype(np.float32)
    arguments = {
        "floats": np.zeros(32, np.float32),
        "doubles": np.zeros(32),
        "wides": np.zeros(32, np.uint64),
        "in": values,
    }
    launch = Launch((2, 1, 1), (128, 1, 1))
    floats, doubles, wides = run_all(bench, "reduction", arguments, launch, "floats", "doubles", "wides")
    sums = values.astype(np.float64).reshape(32, 8).sum(axis=1)
    np.testing.assert_allclose(floats, sums, rtol=0, atol=8 * 8 * np.finfo(np.float32).eps)
    np.testing.assert_allclose(doubles, sums, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(wides, (np.arange(256, dtype=np.uint64) << np.uint64(20)).reshape(32, 8).sum(axis=1))


def test_votes(bench: Bench) -> None:
    launch = Launch((1, 1, 1), (64, 1, 1))
    out = run_all(bench, "votes", {"out": np.zeros((6, 64), np.uint32)}, launch, "out")
    low = sum(1 << lane for lane in range(12) if lane & 1)
    high = sum(1 << lane for lane in range(12, 32) if lane & 2)
    second_warp = np.arange(64) >= 32
    np.testing.assert_array_equal(out[0], np.where(np.arange(64) % 32 < 12, low, high))
    np.testing.assert_array_equal(out[1], second_warp)
    np.testing.assert_array_equal(out[2], second_warp)
    np.testing.assert_array_equal(out[3], np.full(64, 22))
    np.testing.assert_array_equal(out[4], np.full(64, 1))
    np.testing.assert_array_equal(out[5], np.full(64, 0))


def test_atomics(bench: Bench) -> None:
    arguments = {
        "ints": np.zeros(6, np.int32),
        "wides": np.zeros(1, np.uint64),
        "floats": np.zeros(1, np.float32),
        "histogram": np.zeros(8, np.int32),
    }
    launch = Launch((3, 1, 1), (64, 1, 1))
    ints, wides, floats, histogram = run_all(bench, "atomics", arguments, launch, *arguments)
    np.testing.assert_array_equal(ints, [192, 63, -63, 1, -1, 77])
    assert wides[0] == 192 << 33
    assert floats[0] == 96
    np.testing.assert_array_equal(histogram, 3 * np.bincount(np.arange(64) ** 2 % 8, minlength=8))


def test_vectors(bench: Bench, rng: np.random.Generator) -> None:
    a = rng.normal(size=(N, 4)).astype(np.float32)
    b = rng.normal(size=(2 * N, 2)).astype(np.float32)
    arguments = {"out": np.zeros_like(a), "a": a, "b": b, "words": np.zeros((N, 4), np.uint32), "n": np.int32(N)}
    out, four = run_all(bench, "vectors", arguments, over(N, 96), "out", "words")
    np.testing.assert_array_equal(out, (a + b.reshape(N, 4))[:, ::-1])
    i = np.arange(N)
    np.testing.assert_array_equal(four, np.stack([i, i + 1, np.full(N, 3), i % 96], axis=1))


def test_halves(bench: Bench, rng: np.random.Generator) -> None:
    a, b = ((rng.normal(size=N) * 10.0 ** rng.uniform(-6, 4, N)).astype(np.float32) for _ in range(2))
    arguments = {"out": np.zeros((6, N), np.uint16), "a": a, "b": b, "n": np.int32(N)}
    out = run_all(bench, "halves", arguments, over(N), "out").view(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        x, y = a.astype(np.float16), b.astype(np.float16)
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        expected = [
            x,
            (wide_x + wide_y).astype(np.float16),
            (wide_x * wide_y).astype(np.float16),
            (wide_x * wide_y + wide_x).astype(np.float16),
            (x.astype(np.float32) + np.float32(1)).astype(np.float16),
            (wide_x + wide_y).astype(np.float16),
        ]
    for row, values in enumerate(expected):
        np.testing.assert_array_equal(out[row], values, err_msg=f"row {row}")  # takes one NaN for another


def test_halves_are_compared(bench: Bench, rng: np.random.Generator) -> None:
    a, b = (rng.choice(np.array([-1, 0, 1, np.nan], np.float32), N) for _ in range(2))
    text = (TEXTS / "halves.cu").read_text()
    arguments = {"out": np.zeros((6, N), np.uint32), "a": a, "b": b, "n": np.int32(N)}
    out = run_all(bench, "halves_compared", arguments, over(N), "out", text=text)[:, :-1]
    no_number = np.isnan(a) | np.isnan(b)
    for row, name in zip(out, ("eq", "ne", "lt", "le", "gt", "ge"), strict=True):
        holds = COMPARED[name](a, b) & ~no_number
        either = holds | no_number
        both = [each[:-1] & each[1:] for each in (holds, either)]
        expected = holds[:-1] | either[:-1] << 1 | both[0] << 2 | both[1] << 3
        np.testing.assert_array_equal(row, expected, name)


def test_every_half_becomes_its_float(bench: Bench) -> None:
    text = (TEXTS / "halves.cu").read_text()  # a source of two kernels
    arguments = {"out": np.zeros(65536, np.float32)}
    out = run_all(bench, "halves_to_floats", arguments, over(65536, 256), "out", text=text)
    np.testing.assert_array_equal(out, np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32))


@pytest.mark.parametrize("dynamic", [1024, 48 * 1024])  # the second is more than 48 KiB only with the static bytes
def test_shared_memory(bench: Bench, rng: np.random.Generator, dynamic: int) -> None:
    matrix = rng.normal(size=(37, 50)).astype(np.float32)
    arguments = {"out": np.zeros((50, 37), np.float32), "in": matrix, "rows": np.int32(37), "columns": np.int32(50)}
    launch = Launch((ceil_div(50, 16), ceil_div(37, 16), 1), (16, 16, 1), shared_bytes=dynamic)
    text = (TEXTS / "shared.cu").read_text()
    out = run_all(bench, "transpose", arguments, launch, "out", text=text)
    np.testing.assert_array_equal(out, matrix.T)
    assert bench.compile(text, "transpose").shared_bytes == 4 * (16 * 17 + 256)


def test_warps_alone(bench: Bench, rng: np.random.Generator) -> None:
    values = rng.integers(-1000, 1000, 256, dtype=np.int32)
    arguments = {"out": np.zeros(256, np.int32), "in": values, "rounds": np.int32(3)}
    out = run_all(bench, "warp_tile", arguments, Launch((2, 1, 1), (128, 1, 1)), "out")
    expected = values.reshape(8, 32)[:, ::-1] + 3
    halves = expected.reshape(8, 2, 16)
    expected[:, [0, 16]] = halves.sum(axis=2)
    np.testing.assert_array_equal(out, expected.ravel())


@pytest.mark.parametrize("n_rounds", [1, 2, 9])
def test_asynchronous_copies(bench: Bench, rng: np.random.Generator, n_rounds: int) -> None:
    values = rng.normal(size=(n_rounds, 128, 4)).astype(np.float32)
    arguments = {"out": np.zeros(128, np.float32), "in": values, "rounds": np.int32(n_rounds)}
    out = run_all(bench, "pipeline", arguments, Launch((1, 1, 1), (128, 1, 1)), "out")
    expected = values.astype(np.float64).sum(axis=(0, 2))[::-1]
    np.testing.assert_allclose(out, expected, rtol=0, atol=4 * n_rounds * 16 * np.finfo(np.float32).eps)


@pytest.mark.parametrize(("n_words", "first_row"), [(160, 4), (150, -7), (163, 30)])
def test_boxes_are_copied(bench: Bench, rng: np.random.Generator, n_words: int, first_row: int) -> None:
    """Round a ring, in whatever order they end; what lies outside of the array is 0."""
    arch = bench.target.device.arch
    if arch != "host" and int(arch.removeprefix("sm_")) < 90:
        pytest.skip(f"the copy engine came with sm_90; this GPU is {arch}")
    n_rows, n_boxes = 40, 10
    given = words(rng, n_rows * 168).reshape(n_rows, 168)
    box_map = TensorMap(1, (n_words, n_rows), (168 * 4,), (16, 32), swizzle=64, element=4)
    launch = Launch((1, 1, 1), (96, 1, 1), 3 * (2048 + 16), (box_map,))
    arguments = {"out": np.zeros((32, 16), np.uint32), "in": given, "n": np.int32(n_boxes), "y": np.int32(first_row)}
    out = run_all(bench, "boxes", arguments, launch, "out", text=with_library("tma", "boxes"))
    padded = np.zeros((n_rows + 2 * 32, 160), np.uint32)
    padded[32 : 32 + n_rows, : min(n_words, 160)] = given[:, : min(n_words, 160)]
    expected = padded[32 + first_row : 64 + first_row].reshape(32, n_boxes, 16).sum(axis=1, dtype=np.uint32)
    np.testing.assert_array_equal(out, expected)


# ---------------------------------------------------------------------- tensor cores
@pytest.mark.parametrize("n_k", [32, 16])
def test_matrices_of_bytes_are_multiplied(bench: Bench, rng: np.random.Generator, n_k: int) -> None:
    a, b = (rng.integers(-128, 128, (50, n, n_k), dtype=np.int8) for n in (16, 8))
    a[0], b[0], a[1], b[1], a[2], b[2] = -128, -128, -128, 127, 127, 127
    sums = rng.integers(-(2**31), 2**31, (50, 16, 8)).astype(np.int32)
    sums[0], sums[1], sums[2] = 0, -(2**31), 2**31 - 1  # sums wrap
    arguments = {"sums": sums, "a": a.view(np.uint32), "b": b.view(np.uint32)}
    launch = Launch((50, 1, 1), (32, 1, 1))
    out = run_all(bench, f"mma_m16n8k{n_k}_s8", arguments, launch, "sums", text=with_library("mma", "mma"))
    exact = sums.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64).transpose(0, 2, 1)
    np.testing.assert_array_equal(out, exact.astype(np.uint32).view(np.int32))


def test_matrices_of_halves_are_multiplied(bench: Bench, rng: np.random.Generator) -> None:
    a, b = (rng.normal(size=(50, n, 16)).astype(np.float16) for n in (16, 8))
    sums = rng.normal(size=(50, 16, 8)).astype(np.float32)
    a[:9], b[:9], sums[:9] = (rng.integers(-256, 257, v[:9].shape) for v in (a, b, sums))
    arguments = {"sums": sums, "a": a.view(np.uint32), "b": b.view(np.uint32)}
    launch = Launch((50, 1, 1), (32, 1, 1))
    out = run_all(bench, "mma_m16n8k16_f16", arguments, launch, "sums", text=with_library("mma", "mma"))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64).transpose(0, 2, 1)
    exact = sums + wide_a @ wide_b
    np.testing.assert_array_equal(out[:9], exact[:9])  # integers below 2^24
    size = np.abs(sums) + np.abs(wide_a) @ np.abs(wide_b)  # each of 17 terms may be truncated
    assert (np.abs(out - exact) <= 17 * np.finfo(np.float32).eps * size).all()


def test_matrices_are_loaded(bench: Bench, rng: np.random.Generator) -> None:
    rows = rng.integers(0, 256, (32, 16), dtype=np.uint8)
    arguments = {"out": np.zeros((14, 32), np.uint32), "in": rows}
    out = run_all(bench, "ldmatrix", arguments, Launch((1, 1, 1), (32, 1, 1)), "out", text=with_library("mma", "mma"))
    matrices = rows[(5 * np.arange(32) + 3) % 32].reshape(4, 8, 16)
    plain = matrices.view(np.uint32).reshape(4, 32)
    turned = np.ascontiguousarray(matrices.view(np.uint16).transpose(0, 2, 1)).view(np.uint32).reshape(4, 32)
    np.testing.assert_array_equal(out[:7], plain[[0, 0, 1, 0, 1, 2, 3]])
    np.testing.assert_array_equal(out[7:], turned[[0, 0, 1, 0, 1, 2, 3]])
