"""correlate by mma_sync: variants with an error in their source, which must fail. Of wgmma: test_correlate_wgmma.py."""

import pytest

from autotune import Config

from .common import check_mutant, first_is_quick
from .test_correlate import KERNEL, LATE, SMALL, TIMES, WIDE

MUTANTS: list[tuple[str, int, str, Config, str, str, str]] = [
    ("no barrier", 8, "blocks", SMALL, "__syncthreads();", "", "launch_failed"),
    ("no barrier with late copies", 8, "batches", LATE, "__syncthreads();", "", "launch_failed"),
    (
        "copies before the barrier",
        8,
        "blocks",
        SMALL,
        "BEFORE = READ_AHEAD < N_STAGES - 1",
        "BEFORE = true",
        "launch_failed",
    ),
    ("no wait", 8, "blocks", SMALL, "READ_AHEAD : READ_AHEAD - 1>()", "READ_AHEAD : READ_AHEAD>()", "launch_failed"),
    ("groups not closed", 8, "blocks", SMALL, "unit);\n        close_group();", "unit);", "launch_failed"),
    ("row of the triangle", 8, "blocks", SMALL, "while (index >= blocks", "while (index > blocks", "wrong"),
    ("column of the triangle", 8, "blocks", SMALL, "index * RECEIVERS_I}", "(index + 1) * RECEIVERS_I}", "wrong"),
    ("end of a row", 8, "blocks", WIDE, "(end + RECEIVERS_I - 1) / RECEIVERS_I", "end / RECEIVERS_I + 2", "wrong"),
    (
        "polarisations swapped",
        8,
        "blocks",
        SMALL,
        "p = product % 2, own = product / 2 * 2",
        "p = product / 2, own = product % 2 * 2",
        "wrong",
    ),
    ("sign of the imaginary part", 8, "blocks", SMALL, "0x01000100 - (word", "0u + (word", "wrong"),
    ("order of what is turned", 8, "batches", SMALL, "0x6341", "0x4361", "wrong"),
    ("sign of halves", 16, "blocks", SMALL, "^ 0x80000000", "^ 0x00008000", "wrong"),
    ("sign of nibbles", 4, "blocks", SMALL, "(0x10101010 - (unit", "(0u + (unit", "wrong"),
    ("neighbour of a nibble", 4, "blocks", SMALL, "unit[product] << 4 & 0xf0f0f0f0", "unit[product] << 4", "wrong"),
    ("scale of nibbles", 4, "batches", SMALL, "BITS == 4 ? 8 : 0", "BITS == 4 ? 7 : 0", "wrong"),
    ("second half of a unit", 4, "batches", SMALL, "_PER_UNIT = BITS == 4 ? 2 : 1", "_PER_UNIT = 1", "wrong"),
    ("last unit", 8, "blocks", SMALL, "n_left > 0", "n_left > 1", "wrong"),
    ("past the slice", 8, "blocks", SMALL, "n_left > 0", "n_left >= 0", "launch_failed"),
    (
        "past the batch",
        8,
        "batches",
        SMALL,
        "in_batch < BATCH_BYTES",
        "true",
        "launch_failed",
    ),
    ("next batch", 8, "batches", SMALL, "in_batch += is_last ? -OTHERS", "in_batch += is_last ? OTHERS", "wrong"),
    (
        "past the receivers",
        8,
        "blocks",
        SMALL,
        "is_valid && receiver + i * APART < N_RECEIVERS",
        "is_valid",
        "launch_failed",
    ),
    ("range ignored", 8, "blocks", SMALL, "first_batch + begin", "begin", "wrong"),
    (
        "length of the range ignored",
        8,
        "blocks",
        SMALL,
        "n_slices, int n_batches)\n{\n",
        "n_slices, int n_batches)\n{\n    ++n_batches;\n",
        "launch_failed",
    ),
    ("one accumulator for all", 8, "blocks", SMALL, "blockIdx.z * static_cast<long long>(n_channels) +", "", "wrong"),
    ("accumulators overwritten", 8, "blocks", SMALL, "before.x + (sums", "(sums", "wrong"),
    ("floats overwritten", 16, "blocks", SMALL, "before.w + sums", "sums", "wrong"),
    ("lanes of a pair", 8, "blocks", LATE, "odd ? own.im[of_even] : own.im[of_odd]", "own.im[of_even]", "wrong"),
    ("half of a pair", 8, "blocks", LATE, "odd ? (NARROW ? 4 : 2) : 0", "odd ? 2 : 2", "launch_failed"),
    ("other lane's receiver", 8, "blocks", LATE, "of_lane(lane % 4 ^ 1), j", "of_lane(lane % 4), j", "wrong"),
    ("diagonal", 8, "blocks", SMALL, "exists && i <= j}", "exists && i < j}", "wrong"),
    ("above the diagonal", 8, "blocks", SMALL, "exists && i <= j}", "exists}", "launch_failed"),
    ("last receiver", 8, "blocks", SMALL, "exists = j < N_RECEIVERS", "exists = true", "launch_failed"),
    (
        "warps on the diagonal",
        8,
        "blocks",
        WIDE,
        "first_i < first_j + OCTETS_J * 8 &&",
        "first_i < first_j &&",
        "wrong",
    ),
    ("other side on the diagonal", 8, "blocks", SMALL, "square ? 0 : UNITS_J", "UNITS_J", "launch_failed"),
    ("order of matrices", 8, "blocks", SMALL, "matrix % 2 * 2 + matrix / 2", "matrix", "wrong"),
    ("polarisation of pairs", 8, "batches", SMALL, "0x7632 : 0x7531", "0x5410 : 0x6420", "wrong"),
    ("ring", 8, "blocks", SMALL, "buffer == N_STAGES - 1", "buffer == N_STAGES - 2", "launch_failed"),
]


@pytest.mark.planted
@pytest.mark.parametrize(
    ("bits", "layout", "config", "old", "new", "status"),
    first_is_quick(m[1:] for m in MUTANTS),
    ids=[m[0] for m in MUTANTS],
)
def test_mutants_fail(bits: int, layout: str, config: Config, old: str, new: str, status: str) -> None:
    problem = KERNEL.problem({"n_receivers": 40, "bits": bits, "layout": layout, "n_times": TIMES[layout][bits]})
    check_mutant(KERNEL, problem, config, old, new, status)
