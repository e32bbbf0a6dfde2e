"""Blocks of samples: the same however they are cut, made once while times go up, and quantised alike."""

import numpy as np
import pytest

from autotune.engines.simulated.sample_blocks import Blocks, quantised

pytestmark = pytest.mark.quick
SIZE = 10


def counting(made: list[int]) -> Blocks:
    """Blocks of two rows, whose samples are their times and the negative ones."""

    def make(number: int) -> np.ndarray:
        made.append(number)
        times = np.arange(number * SIZE, (number + 1) * SIZE)
        return np.stack([times, -times])

    return Blocks(make, SIZE)


@pytest.mark.parametrize(("begin", "n"), [(0, 10), (-25, 7), (-3, 30), (9, 1), (10, 0), (13, 0), (95, 5)])
def test_any_part_is_cut_of_blocks(begin: int, n: int) -> None:
    times = np.arange(begin, begin + n)
    assert np.array_equal(counting([]).take(begin, n), [times, -times])


def test_a_block_that_is_needed_again_is_kept_and_no_other() -> None:
    made: list[int] = []
    blocks = counting(made)
    for begin in (0, 15, 25, 45, 0):
        blocks.take(begin, 12)
    assert made == [0, 1, 2, 3, 4, 5, 0, 1]


def test_samples_are_rounded_half_to_even_and_limited() -> None:
    values, beyond = quantised(np.array([-9.0, -4.4, -3.5, 0.5, 1.5, 3.49, 3.5], np.float32), -4, 3)
    assert values.dtype == np.int16 and values.tolist() == [-4, -4, -4, 0, 2, 3, 3]
    assert beyond.tolist() == [True, False, False, False, False, False, True]
