"""Draws bars and curves as text, with block characters in eighths."""

from collections.abc import Sequence
from math import log

from ..core.units import seconds_text

RIGHTWARD, UPWARD = " ▏▎▍▌▋▊▉█", " ▁▂▃▄▅▆▇█"


def bar(share: float, width: int = 20) -> str:
    """Returns a bar that fills ``share`` of ``width`` characters, to an eighth of one."""
    eighths = round(8 * width * min(1.0, max(0.0, share)))
    return "█" * (eighths // 8) + RIGHTWARD[eighths % 8].strip()


def curve(bests: Sequence[float | None], width: int = 60, height: int = 4) -> list[str]:
    """Returns lines that plot the best time so far over the trials: tall is slow, on a logarithmic scale.

    A column is the state after the last of its trials; it is empty as long as nothing was measured.
    """
    times = [best for best in bests if best]
    if not times:
        return ["best so far: no config timed"]
    low, high, n = min(times), max(times), len(bests)
    first, last = seconds_text(times[0]), seconds_text(low)
    title = f"best so far over {n} trials: {first} to {last}, found by trial {1 + bests.index(low)}"
    if high / low <= 1.0:  # the ratio rounds to 1 even if the two differ in their last bit
        return [title]
    width = min(width, n)
    columns = [bests[(i + 1) * n // width - 1] for i in range(width)]
    levels = [0 if best is None else 1 + round((8 * height - 1) * _share(best, low, high)) for best in columns]
    rows = ["".join(UPWARD[min(8, max(0, level - 8 * row))] for level in levels) for row in reversed(range(height))]
    labels = [seconds_text(high), *[""] * (height - 2), seconds_text(low)]
    return [title, *(f"{label:>10} {row}".rstrip() for label, row in zip(labels, rows, strict=True))]


def _share(best: float, low: float, high: float) -> float:
    return log(best / low) / log(high / low)
