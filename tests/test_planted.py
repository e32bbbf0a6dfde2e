"""A sample of `python -m tests.planted`: wrong kernels that a sweep must not measure, and the right one beside them."""

from pathlib import Path

import pytest

from .planted.swept import outcomes

SAMPLE = {
    "one": [
        "SKIPS_SOME",
        "KEEPS_OLD_OF_SAME_SIGN",
        "WRITES_OVER_PATTERNS_ONLY",
        "KEEPS_RESULTS_AT_FULL_SIZE",
        "USES_LAST_INPUTS",
        "COUNTS_LAUNCHES",
        "WRONG_AT_FULL_SIZE",
        "IGNORES_SCALE",
        "READS_PAST_CONSTANTS",
    ],
    "two": [
        "TAKES_NAN_FOR_ZERO",
        "KEEPS_PLAUSIBLE_SUMS",
        "HALF_THE_CHUNKS_AT_FULL_SIZE",
        "SUMS_OF_LAST_LAUNCH",
        "LEAVES_ANSWERS",
        "SUMS_A_FEW_TIMES",
    ],
}


@pytest.mark.parametrize("kernel", SAMPLE)
def test_no_planted_fault_is_measured(kernel: str, tmp_path: Path) -> None:
    found = outcomes(kernel, SAMPLE[kernel], "host", tmp_path)
    assert [fault for fault, (status, _) in found.items() if status == "measured"] == ["RIGHT"]
    assert len(found) == 1 + len(SAMPLE[kernel])
