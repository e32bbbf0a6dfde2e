"""What autotune does, and what one recorded sweep of it looks like: every trial, the default, the winner, a copy."""

from itertools import accumulate
from math import log
from pathlib import Path

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, Picture

from autotune.records.folder import SweepFolder
from autotune.records.record import SweepRecord

RECORD = (
    Path(__file__).parents[2]
    / "results/NVIDIA_H200/ddc/taps=128,decimation=8,sample_bits=10,n_pols=2,n_samples=33554432"
)
WIDTH, HEIGHT = 960, 560
LEFT, RIGHT, TOP, BOTTOM = 80, 700, 232, 500  # of the chart
SLOWEST, FASTEST = 400, 30  # us, the ends of its axis
STATIONS = (
    (BLUE, ("mine.py", "what it computes")),
    (BLUE, ("mine.cu.j2", "how CUDA does it")),
    (GREY, ("variants", "thousands")),
    (ORANGE, ("verify", "against NumPy")),
    (ORANGE, ("measure", "cold L2")),
    (PURPLE, ("record", "every trial")),
    (GREEN, ("package", "of the winners")),
)


def picture() -> str:
    sweep = SweepRecord.of(SweepFolder(RECORD))
    p = Picture(WIDTH, HEIGHT, "What autotune does, and one recorded sweep")
    p.text(24, 36, "From a template to the fastest correct build", "title")
    _stations(p)
    _chart(p, sweep)
    p.text(24, HEIGHT - 14, "Made from results/NVIDIA_H200/ddc by docs/pictures/overview.py.", "muted small")
    return p.svg()


def _stations(p: Picture) -> None:
    """The two files that a user writes, one above the other, and the stations after them."""
    width, height, gap, middle = 112, 46, 30, 110
    p.labelled(24, middle - height - 5, width, height, *STATIONS[0])
    p.labelled(24, middle + 5, width, height, *STATIONS[1])
    x = 24 + width
    for fill, lines in STATIONS[2:]:
        p.arrow((x + 4, middle), (x + gap - 4, middle))
        x += gap
        p.labelled(x, middle - height / 2, width, height, fill, lines)
        x += width
    p.line((x - 2.5 * width - 2 * gap, middle + 38), (x - 4.5 * width - 4 * gap, middle + 38), arrow=True)
    p.text(x - 3.5 * width - 3 * gap, middle + 58, "the search learns from each time", "small muted", anchor="middle")


def _chart(p: Picture, sweep: SweepRecord) -> None:
    """The median of each trial in the order of the sweep, and the best so far."""
    trials = [trial for trial in sweep.trials if trial.median_s]
    medians = [1e6 * (trial.median_s or 0.0) for trial in trials]
    default, winner = (1e6 * each.median_s for each in (sweep.default, sweep.winner) if each is not None)
    least = (trials[0].efficiency or 0.0) * medians[0]  # the same for all of them
    title = f"ddc on one NVIDIA H200: {len(trials)} trials, all of them right"
    p.text(LEFT, TOP - 14, f"{title}; median times in us", "bold")
    for value in (30, 50, 100, 200, 400):
        p.text(LEFT - 12, _y(value) + 5, str(value), "small", anchor="end")
        p.line((LEFT, _y(value)), (LEFT + 6, _y(value)))
    p.line((LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM))
    xs = [LEFT + 8 + (RIGHT - LEFT - 8) * i / len(trials) for i in range(len(trials))]
    p.dots(((x, _y(median)) for x, median in zip(xs, medians, strict=True)), "#4393c3", 4)
    best = list(accumulate(medians, min))
    steps = [(xs[0], _y(best[0]))]
    for x, before, now in zip(xs[1:], best, best[1:], strict=False):
        if now != before:
            steps += [(x, _y(before)), (x, _y(now))]
    p.line(*steps, (RIGHT, _y(best[-1])))
    beside = (
        (default, -6, f"the default: {default:.0f} us", "the config to start from"),
        (winner, -22, f"the winner: {winner:.1f} us", f"{default / winner:.2f} times as fast, checked"),
        (least, 6, f"the bytes alone: {least:.1f} us", "at the speed of a copy"),
    )
    for value, lower, text, more in beside:
        y = _y(value)
        p.line((LEFT, y), (RIGHT + 8, y), dashed=True)
        p.text(RIGHT + 16, y + lower + 5, text, "bold")
        p.text(RIGHT + 16, y + lower + 21, more, "small muted")
    p.text(RIGHT, BOTTOM + 20, "trials in the order of the sweep", "small muted", anchor="end")
    p.line((RIGHT - 190, TOP + 10), (RIGHT - 160, TOP + 10))
    p.text(RIGHT - 152, TOP + 15, "the best so far", "small")


def _y(microseconds: float) -> float:
    return TOP + (BOTTOM - TOP) * log(SLOWEST / microseconds) / log(SLOWEST / FASTEST)
