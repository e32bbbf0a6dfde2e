"""Arrays as they lie: orders of axes, structures, and the numbers in them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from autotune import UsageError
from autotune.porting.answers import answers_of
from autotune.porting.array_memory import Memory, dtype_text, is_same, laid_out, leaves, scalar_as_in_cuda
from autotune.porting.call import read_call
from autotune.porting.contents import beyond, shuffled_contents
from autotune.porting.cuda_signature import CudaParameter

CUBE = np.arange(2 * 3 * 5, dtype=np.int16).reshape(2, 3, 5)
INNER = np.dtype([("q", "f8"), ("flag", "i1")], align=True)
OUTER = np.dtype([("tag", "u1"), ("inner", INNER), ("v", "f4", (3,))], align=True)


@pytest.mark.quick
@pytest.mark.parametrize(
    "array",
    [CUBE, np.asfortranarray(CUBE), CUBE.transpose(1, 0, 2), CUBE.transpose(2, 0, 1), CUBE[:, :1], np.zeros((1, 4, 1))],
)
def test_what_is_stored_is_the_memory(array: np.ndarray) -> None:
    array = array if array.base is None or array.size == CUBE.size else array.copy()
    memory = Memory.of("x", array)
    assert memory.stored.flags.c_contiguous and np.shares_memory(memory.stored, array)
    assert memory.stored.tobytes() == array.tobytes(order="A" if array.flags.fnc else "K") or array.ndim == 3
    assert np.array_equal(memory.restored(memory.stored), array)


@pytest.mark.parametrize("array", [CUBE[::2, ::2], CUBE[:, ::-1], CUBE[:, :, 1:], np.broadcast_to(CUBE[:1], (4, 3, 5))])
def test_an_array_with_gaps_is_refused(array: np.ndarray) -> None:
    with pytest.raises(UsageError, match="x has gaps, or runs backwards"):
        Memory.of("x", array)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.zeros(3, ">f4"), r"x is of the other byte order; give \.astype\('float32'\)"),
        (np.zeros(3, np.longdouble), "x is of float128, which CUDA lacks"),
        (np.zeros(3, "U2"), "x is of <U2, which CUDA lacks"),
        (np.array([None]), "x is of object, which CUDA lacks"),
        (np.zeros(3, [("a", "f4"), ("b", "O")]), "x is a structure without align=True"),
        (np.zeros(3, [("a", "f4"), ("b", "f8")]), "x is a structure without align=True"),
        ([1, 2], "x is list, must be a NumPy array"),
    ],
)
def test_elements_that_cuda_has_not_are_refused(value: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Memory.of("x", value)


def test_structures_keep_the_places_of_their_fields() -> None:
    assert eval(dtype_text(OUTER), {"np": np}) == OUTER and eval(dtype_text(OUTER), {"np": np}).isalignedstruct
    plain = np.dtype([("x", "f4"), ("y", "i4")])  # lies as C++ has it, though nobody said so
    assert laid_out(plain) == plain and laid_out(np.dtype([("x", "f4"), ("y", "f8")])) is None
    by_value = scalar_as_in_cuda("p", np.array([(1.5, 7)], plain)[0])
    assert by_value.dtype.isalignedstruct and by_value.tobytes() == np.array([(1.5, 7)], plain).tobytes()
    memory = Memory.of("p", np.zeros((4, 2), OUTER))
    assert memory.stored.shape == (4, 2, OUTER.itemsize) and memory.stored.dtype == np.uint8
    assert [name for name, _ in leaves(memory.typed)] == [".tag", ".inner.q", ".inner.flag", ".v"]
    other = memory.typed.copy()
    raw = other.view(np.uint8).reshape(-1, OUTER.itemsize)
    raw[:, 1] = 9  # between fields
    assert is_same(other, memory.typed)
    raw[-1, 35] = 9  # of the last number
    assert not is_same(other, memory.typed)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16", OUTER])
def test_other_contents_are_of_the_results_size(dtype: Any) -> None:
    result = np.zeros(400, dtype)
    for number, (_, leaf) in enumerate(leaves(result)):
        leaf[...] = np.random.default_rng(number).integers(1, 100, leaf.shape) % (2 if leaf.dtype.kind == "b" else 100)
    first, second = beyond(result)
    for (_, a), (_, b), (_, leaf) in zip(leaves(first), leaves(second), leaves(result), strict=True):
        assert np.isfinite(a).all() and ((a != leaf) | (b != leaf)).all()
        assert float(np.abs(a.astype(complex)).max()) <= 10 * float(np.abs(leaf.astype(complex)).max())


def test_contents_of_indices_are_in_range() -> None:
    given, result = np.arange(7, dtype=np.int32), np.arange(7, dtype=np.int32)[::-1].copy()
    assert [sorted(each) for each in shuffled_contents(given, result)] == [list(range(7))] * 2
    assert list(shuffled_contents(np.zeros(3, np.float32), np.ones(3, np.float32))) == []


@pytest.mark.parametrize(
    ("kind", "dtype", "is_right"),
    [
        ("float", "f4", True),
        ("float", "c8", True),
        ("float", "f8", False),
        ("float2", "c8", True),
        ("float4", "f4", True),
        ("double2", "c16", True),
        ("int", "u4", True),
        ("int", "f4", False),
        ("unsigned char", "?", True),
        ("uchar4", "u1", True),
        ("half2", "f2", True),
        ("__half", "u2", True),
        ("int", OUTER, False),
        ("Particle", OUTER, True),
        ("real", "f8", True),
        ("size_t", "i8", True),
        ("long long", "i4", False),
    ],
)
def test_arrays_are_compared_with_the_signature(kind: str, dtype: Any, is_right: bool) -> None:
    assert (CudaParameter("x", kind, True, False).refuses(np.dtype(dtype)) is None) == is_right


def test_bfloat16_is_compared_as_numbers() -> None:
    source = "__global__ void f(__nv_bfloat16 *y) { y[0] = y[1]; }"
    call = read_call("f", source, 64, [np.ones(64, ml_dtypes.bfloat16)], {"block_size_x": [64]})
    memory = call.arguments[0].memory
    assert memory.stored.dtype == np.uint16 and memory.as_typed(memory.stored).dtype == ml_dtypes.bfloat16
    answer = answers_of(call, [np.full(64, 1 + 2**-7)], 1e-6)["y"]
    assert answer.differs(memory.stored) is None, "one rounding"
    assert str(answer.differs((memory.typed * 2).view(np.uint16))) == "[0] is 2.0, not 1.0078125; 64 of 64 differ"
    first, second = beyond(memory.typed)
    assert first.dtype == ml_dtypes.bfloat16 and ((first != 1) & (second != 1)).all()
    with pytest.raises(UsageError, match="the answer of y is complex, and the output is bfloat16"):
        answers_of(call, [np.ones(64) * 1j], 1e-6)
