"""Who waits for whom in ddc's tensor kernel by wgmma: the path of a sample, and numbers where something waits."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, TEAL, Picture

WIDTH, TOP, BOX_W, BOX_H = 1000, 104, 124, 58
PATH = (
    ("samples", "packed, global", GREY, ""),
    ("stages", "shared memory", BLUE, "pipeline"),
    ("operands", "registers", GREEN, "decode"),
    ("sums", "registers", PURPLE, "products"),
    ("window", "shared memory", ORANGE, "put"),
    ("baseband", "global", GREY, "drain"),
)
STEP = (WIDTH - 48 - BOX_W) / (len(PATH) - 1)
WAITS = (
    ("a warp", "the bytes of its next stage", "the stage's barrier, its parity: TmaPipeline::wait_for_stage"),
    (
        "the copy engine",
        "the warp's last loads from the place that it fills",
        "__syncwarp, and an address: follow_stage",
    ),
    ("a warp", "the products of the part before, whose registers are next", "wgmma.wait_group 1: take_step"),
    ("a warp", "all products: a chain's end, a step's end", "wgmma.wait_group 0: Wgmma::wait"),
    ("a warp's lanes", "a complete window, and then its last reader", "__syncwarp, twice: Epilogue::drain"),
    ("the block", "the largest weight, then the mixed weights", "__syncthreads, twice: MixedWeights::mix"),
    ("the block", "the ring, which tensor cores read", "a fence, __syncthreads: WeightRing::fill"),
    ("the block", "what each row leaves for the one before it", "__syncthreads, once: rows_have_left"),
)


def picture() -> str:
    p = Picture(WIDTH, 566, "ddc: who waits for whom")
    p.text(24, 34, "Who waits for whom: the path of a sample, by wgmma", "title")
    p.text(
        24,
        56,
        "Arrows are data. A numbered circle is a wait, where it takes place. Warps share the weights and nothing else.",
        "muted",
    )
    for i, (name, where, fill, by) in enumerate(PATH):
        x = 24 + i * STEP
        p.labelled(x, TOP, BOX_W, BOX_H, fill, (name, where))
        if by:
            p.arrow((x - STEP + BOX_W + 2, TOP + BOX_H / 2), (x - 3, TOP + BOX_H / 2))
            p.text(x - (STEP - BOX_W) / 2, TOP - 12, by, "small", anchor="middle")
    _weights(p)
    _around(p)
    _legend(p, 318)
    return p.svg()


def _weights(p: Picture) -> None:
    """The ring is made once, before the mainloop."""
    y, first = TOP + 112, 24 + STEP
    for i, (name, where, fill) in enumerate(
        (("weights", "registers", GREY), ("mixed", "shared memory", TEAL), ("ring", "shared memory", TEAL))
    ):
        p.labelled(first + i * STEP, y, BOX_W, BOX_H, fill, (name, where))
    for i, number in ((0, 6), (1, 7)):
        x = first + i * STEP + BOX_W
        p.arrow((x + 2, y + BOX_H / 2), (x + STEP - BOX_W - 3, y + BOX_H / 2))
        _number(p, x + (STEP - BOX_W) / 2, y + BOX_H / 2 - 20, number)
    ring = first + 2 * STEP + BOX_W / 2
    p.arrow((ring, y - 2), (ring, TOP + BOX_H + 3))
    p.text(
        first,
        y + BOX_H + 18,
        "once for a block, before the mainloop; scratch memory is then the windows'",
        "small muted",
    )


def _around(p: Picture) -> None:
    middle = TOP + BOX_H / 2
    gap = 24 + BOX_W + (STEP - BOX_W) / 2
    _number(p, gap, middle + 20, 2)
    _number(p, gap + STEP, middle + 20, 1)
    _number(p, gap + 2 * STEP, middle + 20, 3)
    _number(p, gap + 3 * STEP, middle + 20, 4)
    _number(p, gap + 4 * STEP, middle + 20, 5)
    window = 24 + 4 * STEP
    p.line(
        (window + 30, TOP + BOX_H + 2),
        (window + 30, TOP + BOX_H + 30),
        (window + 94, TOP + BOX_H + 30),
        (window + 94, TOP + BOX_H + 3),
        arrow=True,
    )
    _number(p, window + 62, TOP + BOX_H + 30, 8)
    p.lines(
        window - 12, TOP + BOX_H + 60, ("the next row's part of a tile,", "where runs overlap"), "small muted", step=16
    )


def _legend(p: Picture, y: float) -> None:
    for x, name in ((58, "who"), (190, "waits for"), (560, "by")):
        p.text(x, y, name, "bold")
    for i, (who, what, by) in enumerate(WAITS):
        at = y + 28 + i * 26
        _number(p, 36, at - 5, i + 1)
        p.text(58, at, who, "small")
        p.text(190, at, what, "small")
        p.text(560, at, by, "small")


def _number(p: Picture, x: float, y: float, number: int) -> None:
    p.box(x - 10, y - 10, 20, 20, RED, radius=10)
    p.text(x, y + 4, str(number), "small", anchor="middle")
