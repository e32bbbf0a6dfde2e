"""What the GPU does while the F-engine runs at its full rate: spans that `benchmarks/engines.py f --timeline` wrote."""

import json
from pathlib import Path

from svg import BLUE, GREEN, ORANGE, Picture

SPANS = Path(__file__).with_suffix(".json")  # [kind, begin, end] in microseconds
LEFT, RIGHT, TOP, ROW = 110, 976, 96, 44
KINDS = {"copy in": BLUE, "kernels": GREEN, "copy out": ORANGE}


def picture() -> str:
    spans = json.loads(SPANS.read_text())
    last = max(end for _, _, end in spans)
    p = Picture(1000, 290, "The F-engine's copies and kernels over time")
    p.text(24, 34, "The F-engine at 20.4 GS/s: two copies at once, and kernels a fifth of the time", "title")
    p.text(24, 56, "H200, 4096 channels, chunks of 2^27 samples of 10 bits; measured with events", "muted")
    for row, (kind, fill) in enumerate(KINDS.items()):
        y = TOP + row * ROW
        p.text(24, y + 21, kind, "bold")
        for _, begin, end in (span for span in spans if span[0] == kind):
            p.box(_x(begin, last), y, max(1.5, _x(end, last) - _x(begin, last)), 32, fill, radius=2)
    y = TOP + len(KINDS) * ROW + 8
    p.line((LEFT, y), (RIGHT, y))
    for ms in range(0, last // 1000 + 1, 5):
        p.line((_x(1000 * ms, last), y), (_x(1000 * ms, last), y + 6))
        p.text(_x(1000 * ms, last), y + 22, f"{ms} ms", "small", anchor="middle")
    p.text(24, y + 44, "The copy in is busy 98 % of the time, and is what bounds the rate.", "small")
    return p.svg()


def _x(microseconds: float, last: float) -> float:
    return LEFT + (RIGHT - LEFT) * microseconds / last
