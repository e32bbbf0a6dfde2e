"""How near ddc comes to the speed of a copy, over decimation and bits: the recorded winners of results/.

The picture is as wide as a page's text, so that it is shown there at its own size.
"""

from itertools import pairwise
from pathlib import Path

from svg import Picture

from autotune.records.folder import find_sweeps
from autotune.records.record import SweepRecord

RECORDS = Path(__file__).parents[2] / "results" / "NVIDIA_H200" / "ddc"
CELL_W, CELL_H, LEFT, TOP, GAP_X, GAP_Y = 72, 64, 74, 116, 26, 72
WORDS = {"wgmma": "wgmma", "wgmma_int8": "int8", "mma_sync": "mma", "register": "-"}  # of the winner's instruction
# From low to high: a scale that is told apart in grey, too.
N_SAMPLES = 1 << 25  # of the grid; other problems were drawn
SCALE = (
    (0.10, (122, 42, 60)),
    (0.40, (214, 96, 77)),
    (0.60, (250, 200, 140)),
    (0.75, (190, 222, 235)),
    (0.9, (67, 147, 195)),
)


def efficiencies() -> dict[tuple[int, int, int], tuple[float, float, str]]:
    """(taps / decimation, decimation, bits) -> efficiency, time in us and instruction of the winner."""
    found = {}
    for sweep in map(SweepRecord.of, find_sweeps(RECORDS)):
        if sweep.problem["n_samples"] != N_SAMPLES or sweep.problem["n_pols"] != 2:
            continue
        winner, problem = sweep.winner, sweep.problem
        assert winner is not None and winner.efficiency is not None
        by = str(winner.config.get("MMA", winner.config["ALGORITHM"]))
        taps, decimation, bits = (int(problem[name]) for name in ("taps", "decimation", "sample_bits"))
        found[taps // decimation, decimation, bits] = winner.efficiency, winner.median_s * 1e6, by
    return found


def colour(value: float) -> tuple[str, bool]:
    """The fill of a cell, and whether white text is needed on it."""
    value = min(max(value, SCALE[0][0]), SCALE[-1][0])
    for (low, a), (high, b) in pairwise(SCALE):
        if value <= high:
            share = (value - low) / (high - low)
            red, green, blue = (round(p + share * (q - p)) for p, q in zip(a, b, strict=True))
            return f"#{red:02x}{green:02x}{blue:02x}", 0.299 * red + 0.587 * green + 0.114 * blue < 120
    raise AssertionError("the scale covers all values")


def picture() -> str:
    found = efficiencies()
    ratios, decimations, bits = (sorted({key[i] for key in found}) for i in range(3))
    width = LEFT + 2 * len(decimations) * CELL_W + GAP_X + 24
    height = TOP + 2 * len(bits) * CELL_H + GAP_Y + 100
    p = Picture(width, height, "ddc: efficiency of the winners over decimation and sample bits, NVIDIA H200")
    p.text(24, 34, "ddc on one NVIDIA H200: efficiency of the recorded winners", "title")
    p.text(24, 58, "The least time by the measured roofline over the median, cold L2; the median; and the", "muted")
    p.text(24, 77, "tensor cores' instruction of the winner. 2 x 32 Mi samples, D: the decimation.", "muted")
    for n, ratio in enumerate(ratios):
        x0 = LEFT + n % 2 * (len(decimations) * CELL_W + GAP_X)
        y0 = TOP + n // 2 * (len(bits) * CELL_H + GAP_Y)
        p.text(x0, y0 - 9, f"taps = {ratio} D", "bold")
        for j, value in enumerate(bits):
            if n % 2 == 0:  # the one on its right has the same rows
                p.text(x0 - 8, y0 + (j + 0.5) * CELL_H + 5, f"{value} bits", anchor="end")
            for i, decimation in enumerate(decimations):
                _cell(p, x0 + i * CELL_W, y0 + j * CELL_H, found[ratio, decimation, value])
        for i, decimation in enumerate(decimations):
            p.text(x0 + (i + 0.5) * CELL_W, y0 + len(bits) * CELL_H + 20, f"D = {decimation}", anchor="middle")
    p.text(
        24,
        height - 40,
        "wgmma: of float16; int8: wgmma of bytes; mma: mma.sync of float16; -: no tensor cores.",
        "muted",
    )
    p.text(24, height - 16, "Made from results/NVIDIA_H200/ddc by docs/pictures/ddc_efficiency.py.", "muted small")
    return p.svg()


def _cell(p: Picture, x: float, y: float, what: tuple[float, float, str]) -> None:
    efficiency, microseconds, by = what
    fill, dark = colour(efficiency)
    ink = "white" if dark else ""
    p.box(x, y, CELL_W, CELL_H, fill, radius=0, edge="#ffffff")
    p.text(x + CELL_W / 2, y + 20, f"{efficiency:.0%}", f"bold {ink}".strip(), anchor="middle")
    p.text(x + CELL_W / 2, y + 38, f"{microseconds:.1f} us", ink, anchor="middle")
    p.text(x + CELL_W / 2, y + 55, WORDS.get(by, by), ink, anchor="middle")
