"""How samples become voltages in channelise: in one launch, or in two with the columns' transforms between them."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, TEAL, Picture

HEIGHT = 58


def picture() -> str:
    p = Picture(1000, 600, "channelise: one launch, or two")
    p.text(24, 34, "channelise: one launch, or two", "title")
    p.text(24, 56, "Each coloured box is a step of a block, on a part: SPECTRA consecutive spectra of a heap.", "muted")
    _tables(p, 84)
    _one(p, 214)
    _two(p, 384)
    return p.svg()


def _tables(p: Picture, y: float) -> None:
    p.text(24, y + 14, "before both", "bold")
    p.arrow((112, y + 42), (228, y + 42))
    p.text(170, y + 34, "gains [C, n_pols]", "small", anchor="middle")
    p.labelled(230, y + 14, 190, HEIGHT, PURPLE, ("channelise_tables", "a short launch"))
    p.arrow((422, y + 42), (536, y + 42))
    p.lines(
        546,
        y + 28,
        (
            "twiddles of both passes of a row",
            "splits: e^(i pi k / N), for each pair of bins k, N - k",
            "polar: size and angle of both gains, for each pair and polarisation",
        ),
        "small",
    )


def _block(p: Picture, x: float, y: float, width: float, name: str, steps: tuple[tuple[str, str, str], ...]) -> None:
    """A launch, and the steps of its blocks: (colour, what, by whom)."""
    p.box(x, y, width, HEIGHT + 40, "#f6f8fa", edge="#8c959f")
    p.text(x + 10, y + 18, name, "small bold")
    each = (width - 20 - 26 * (len(steps) - 1)) / len(steps)
    for i, (fill, what, who) in enumerate(steps):
        at = x + 10 + i * (each + 26)
        p.labelled(at, y + 28, each, HEIGHT, fill, (what, who))
        if i:
            p.arrow((at - 25, y + 28 + HEIGHT / 2), (at - 1, y + 28 + HEIGHT / 2))


def _one(p: Picture, y: float) -> None:
    p.line((24, y - 18), (976, y - 18), dashed=True)
    p.text(24, y + 6, "ALGORITHM one, 64 to 1024 channels: N = C points in a block", "bold")
    y += 20
    p.text(24, y + 40, "samples", "small bold")
    p.lines(24, y + 58, ("uint8", "[n_pols,", " row_bytes]"), "small muted", step=15)
    p.arrow((94, y + 56), (118, y + 56))
    _block(
        p,
        120,
        y,
        722,
        "channelise: a block takes part after part; z [SPECTRA, N] in shared memory, for one polarisation or both",
        (
            (BLUE, "filter", "a thread: a column"),
            (ORANGE, "DFT of N points", "a warp: a row, or some"),
            (GREEN, "finish: split, rotate, round", "a thread: a pair of bins"),
        ),
    )
    p.arrow((844, y + 56), (868, y + 56))
    p.text(874, y + 40, "voltages", "small bold")
    p.lines(874, y + 58, ("int8 [n_heaps, C,", " spectra_per_heap,", " n_pols, 2]"), "small muted", step=15)
    p.text(140, y + 116, "weights [taps, L], offsets [n_times, n_pols]", "small muted")
    p.text(446, y + 116, "twiddles", "small muted")
    p.text(600, y + 116, "splits, polar; delays, phases [n_times, n_pols]", "small muted")


def _two(p: Picture, y: float) -> None:
    p.line((24, y - 18), (976, y - 18), dashed=True)
    p.text(24, y + 6, "ALGORITHM two, to 65536 channels: N = N1 N2, point n1 N2 + n2, bin k1 + N1 k2", "bold")
    y += 20
    p.text(24, y + 60, "samples", "small bold")
    p.arrow((84, y + 56), (108, y + 56))
    _block(
        p,
        110,
        y,
        330,
        "channelise_columns: COLUMNS of n2, one pol.",
        ((BLUE, "filter", "a thread: a column"), (TEAL, "DFT along n1", "N1 points, a thread")),
    )
    p.arrow((442, y + 56), (468, y + 56))
    p.labelled(470, y + 28, 92, HEIGHT, GREY, ("between", "in memory"))
    p.arrow((564, y + 56), (590, y + 56))
    _block(
        p,
        592,
        y,
        290,
        "channelise: rows k1 and N1 - k1",
        ((ORANGE, "DFT along n2", "N2 points"), (GREEN, "finish", "as above")),
    )
    p.arrow((884, y + 56), (908, y + 56))
    p.text(914, y + 60, "voltages", "small bold")
    p.lines(
        110,
        y + 120,
        (
            "z [SPECTRA, N1 COLUMNS] in shared memory: COLUMNS neighbouring points at N1 places of a spectrum.",
            "between [n_pols, parts, N1, N2 / COLUMNS, SPECTRA, COLUMNS], float32 or half: blocks store runs of",
            "SPECTRA COLUMNS values. Rows begin with the last part: what was stored last is still in the L2 cache.",
            "z [2, ROW_SPECTRA, N2] in shared memory: the rows of both bins of each pair.",
        ),
        "small muted",
        step=17,
    )
