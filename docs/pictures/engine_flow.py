"""Samples of antennas on their way through F-engines and an X-engine to visibilities, and why there are two engines."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, Picture

WIDTH, ROW, TOP = 760, 62, 66
ANTENNAS = ("antenna 0", "antenna 1", "the last one")


def picture() -> str:
    p = Picture(WIDTH, 330, "From the samples of antennas to visibilities: F-engines, then an X-engine")
    p.text(24, 32, "From samples to visibilities: F, then X", "title")
    for number, name in enumerate(ANTENNAS):
        y = TOP + number * ROW
        p.labelled(24, y, 106, 44, GREY, (name, "file or packets"))
        p.arrow((132, y + 22), (176, y + 22))
        p.labelled(178, y, 218, 44, BLUE, ("F-engine", "filter bank, delay, gain, round"))
        p.arrow((398, y + 22), (466, TOP + ROW + 22))
    p.text(154, TOP - 8, "samples", "small muted", anchor="middle")
    p.text(432, TOP - 8, "voltages", "small muted", anchor="middle")
    p.labelled(468, TOP + 8, 116, 152, GREEN, ("X-engine", "all pairs:", "multiply,", "add up"))
    p.arrow((586, TOP + ROW + 22), (628, TOP + ROW + 22))
    p.labelled(630, TOP + 32, 106, 104, ORANGE, ("visibilities", "a dump each", "4 ms to 10 s:", "HDF5, UVH5, MS"))
    y = TOP + 3 * ROW + 14
    p.box(24, y, WIDTH - 48, 56, PURPLE)
    p.text(
        40,
        y + 23,
        "Channels first: a delay is a phase in a narrow channel, and products of channels need no lags.",
        "small",
    )
    p.text(
        40,
        y + 43,
        "F works on one antenna, X on one channel of all: each part scales by itself, in one process or many.",
        "small",
    )
    return p.svg()
