"""A round of a block of channelise: what each thread has of the part in shared memory, step by step."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, Picture

ROWS, CELL = 8, 20  # spectra drawn of a part, and the height of one
WIDTH = 256


def picture() -> str:
    p = Picture(1000, 464, "channelise: a round of a block")
    p.text(24, 34, "A round of a block, with one launch: z[s][n] in shared memory", "title")
    p.text(
        24,
        56,
        "Drawn for PAIRED threads and 8 of 16 spectra. Coloured: what one thread, or the threads of one row, have.",
        "muted",
    )
    _filter(p, 40, 96)
    _transform(p, 372, 96)
    _finish(p, 704, 96)
    return p.svg()


def _z(p: Picture, x: float, y: float, title: str, below: str) -> None:
    p.text(x, y, title, "bold")
    p.box(x, y + 12, WIDTH, ROWS * CELL, GREY)
    for row in range(1, ROWS):
        p.line((x, y + 12 + row * CELL), (x + WIDTH, y + 12 + row * CELL))
    p.text(x - 6, y + 26, "s", "small muted", anchor="end")
    p.text(x + WIDTH / 2, y + 30 + ROWS * CELL, below, "small muted", anchor="middle")


def _filter(p: Picture, x: float, y: float) -> None:
    _z(p, x, y, "1  filter", "point n = even sample + i odd sample")
    for column, colour in ((48, BLUE), (WIDTH - 62, PURPLE)):
        p.box(x + column, y + 12, 14, ROWS * CELL, colour)
    p.paragraph(
        x,
        y + 222,
        "A thread makes the sums of one column n for FIR_SPECTRA spectra, then of its partner N - n. It holds "
        "FIR_TAPS weights, and loads and unpacks each of FIR_SPECTRA + TAPS - 1 points once.",
        42,
    )
    p.paragraph(x, y + 322, "add_sums: a barrier, z is complete; squares go to total_power", 42, "small bold")


def _transform(p: Picture, x: float, y: float) -> None:
    _z(p, x, y, "2  transform", "N = RADIX_1 RADIX_2 points of a row")
    p.box(x, y + 12 + 2 * CELL, WIDTH, CELL, ORANGE)
    p.paragraph(
        x,
        y + 222,
        "RADIX_2 threads of a warp transform a row where it lies. A pass: each takes RADIX_1 points to registers, "
        "transforms them, and puts them back; then RADIX_2 points, with twiddles, into the order of bins.",
        42,
    )
    p.paragraph(x, y + 322, "a barrier: the bins of all rows, and the next part's plan, are complete", 42, "small bold")


def _finish(p: Picture, x: float, y: float) -> None:
    _z(p, x, y, "3  finish", "bin k and its partner N - k")
    for column, colour in ((48, GREEN), (WIDTH - 62, GREEN)):
        p.box(x + column, y + 12, 14, ROWS * CELL, colour)
    p.paragraph(
        x,
        y + 222,
        "A thread has a unit: a pair of bins and POST_SPECTRA spectra. It takes Z at both bins, makes X of them, "
        "rotates, scales and rounds. Voltages of the first polarisation wait for those of the second.",
        42,
    )
    p.paragraph(
        x, y + 322, "no barrier, if paired: the thread's next columns lie where its bins were", 42, "small bold"
    )
