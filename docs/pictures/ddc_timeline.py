"""The mainloop of ddc's tensor kernel by wgmma: what a warp does, what goes on beside it, who waits for whom."""

from dataclasses import dataclass

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, TEAL, Picture

LEFT, RIGHT = 118, 976
PARTS = 4  # of a step, in this picture: one chain


@dataclass
class Segment:
    """What a warp does from ``start`` to ``end``; times are pixels."""

    start: float
    end: float
    fill: str
    label: str


@dataclass
class Products:
    """What the tensor cores do of it."""

    start: float
    end: float
    label: str


def picture() -> str:
    p = Picture(1000, 680, "ddc: the mainloop's timeline")
    p.text(24, 34, "The mainloop by wgmma: one warp, and what goes on beside it", "title")
    p.text(
        24,
        56,
        "The order, and no measured times. All four warps of a warpgroup do the same, and multiply together.",
        "muted",
    )
    _legend(p, 78)
    _by_parts(p, 122)
    _by_steps(p, 432)
    return p.svg()


def _legend(p: Picture, y: float) -> None:
    names = (
        (TEAL, "finish operands"),
        (PURPLE, "issue products"),
        (GREEN, "decode"),
        (BLUE, "load words"),
        (RED, "wait"),
        (ORANGE, "sums, outputs"),
        (GREY, "change the stage"),
    )
    x = 24.0
    for fill, name in names:
        p.box(x, y, 18, 16, fill)
        p.text(x + 24, y + 13, name, "small")
        x += 50 + 6.6 * len(name) + 6


def _lane(p: Picture, y: float, height: float, name: str) -> None:
    p.text(24, y + height / 2 + 5, name)
    p.line((LEFT - 6, y + height + 5), (RIGHT, y + height + 5), dashed=True)


def _draw(p: Picture, y: float, segments: list[Segment], products: list[Products]) -> None:
    """The lanes of the warp and of the tensor cores."""
    _lane(p, y, 40, "warp")
    for s in segments:
        p.labelled(s.start, y, s.end - s.start, 40, s.fill, s.label, "small")
    _lane(p, y + 58, 34, "tensor cores")
    for product in products:
        p.labelled(product.start, y + 58, product.end - product.start, 34, PURPLE, product.label, "small")


class Warp:
    """Appends what a warp does, and the products that it starts: these are taken one after the other."""

    def __init__(self) -> None:
        self.now = float(LEFT)
        self.segments: list[Segment] = []
        self.products: list[Products] = []

    def does(self, length: float, fill: str, label: str = "") -> None:
        self.segments.append(Segment(self.now, self.now + length, fill, label))
        self.now += length

    def issues(self, length: float, duration: float, label: str) -> None:
        self.does(length, PURPLE)
        start = max(self.now - length / 2, self.products[-1].end if self.products else 0)
        self.products.append(Products(start, start + duration, label))

    def waits_for(self, products: Products, label: str = "") -> None:
        self.does(max(products.end - self.now, 6), RED, label)


def _by_parts(p: Picture, y: float) -> None:
    """CHAIN 8, and bytes: a step in parts."""
    p.text(
        24,
        y + 12,
        "A step in parts: CHAIN 8 and wgmma_int8 (mainloop_rolled.cuh), drawn with 4 parts of a step",
        "bold",
    )
    warp = Warp()
    before = Products(LEFT, LEFT, "")
    stage_at = 0.0
    for part in range(PARTS):
        if part == PARTS - 2:
            stage_at = warp.now
            warp.does(26, GREY)
            warp.does(12, RED)
        warp.does(10, TEAL)
        warp.issues(14, 132, f"products of part {part}")
        warp.does(50, GREEN, f"p {(part + 1) % PARTS}")
        warp.does(36, BLUE, f"p {(part + 2) % PARTS}")
        if part == PARTS - 1:
            warp.waits_for(warp.products[-1], "all")
        elif part == 0:
            warp.does(6, RED)
        else:
            warp.waits_for(before)
        before = warp.products[-1]
    end = warp.now
    warp.does(38, ORANGE, "sums")
    warp.does(30, ORANGE, "put")
    warp.does(40, ORANGE, "drain")
    warp.does(10, TEAL)
    warp.issues(14, 132, "products of part 0")
    warp.does(50, GREEN, "p 1")
    warp.does(36, BLUE, "p 2")
    top = y + 62
    p.line((end + 108, top - 24), (end + 108, top + 100), dashed=True)
    p.text(LEFT, top - 10, "step v", "small muted")
    p.text(end + 112, top - 10, "step v + 1", "small muted")
    _draw(p, top, warp.segments, warp.products)
    p.arrow((end, top + 58), (end, top + 42))
    engine = top + 110
    _lane(p, engine, 30, "copy engine")
    p.labelled(LEFT, engine, stage_at + 24 - LEFT, 30, BLUE, "stage n + 1, begun long before", "small")
    p.labelled(
        stage_at + 30,
        engine,
        RIGHT - stage_at - 30,
        30,
        BLUE,
        "stage n + N_STAGES, into the place that is free now",
        "small",
    )
    p.arrow((stage_at + 20, engine), (stage_at + 30, top + 42))
    p.arrow((stage_at + 10, top + 40), (stage_at + 36, engine - 1))
    p.paragraph(
        24,
        engine + 56,
        "Part p: finishes the decoded operands, issues its products, decodes p + 1, loads the words of p + 2, and "
        "waits for the products of p - 1, whose registers it needs next. At a chain's end it waits for all, "
        "and adds the chain to the sums. Two parts before a step's end its words are all loaded: if the stage "
        "ends there, lane 0 gives its place to the copy engine, and the warp waits at the barrier of the next "
        "stage.",
        150,
    )


def _by_steps(p: Picture, y: float) -> None:
    """CHAIN 0: whole steps, N_TILES of them written out."""
    p.line((24, y - 12), (976, y - 12), dashed=True)
    p.text(24, y + 12, "Whole steps: CHAIN 0 (mainloop_unrolled.cuh), the code of L steps written out", "bold")
    warp = Warp()
    top = y + 52
    for n in range(3):
        name = "v" if n == 0 else f"v + {n}"
        p.text(warp.now, top - 8, f"step {name}", "small muted")
        warp.does(14, TEAL)
        warp.issues(28, 210, f"all products of step {name}")
        for _ in range(2):
            warp.does(44, GREEN, f"v+{n + 1}")
            warp.does(34, BLUE, f"v+{n + 2}")
        warp.waits_for(warp.products[-1], "all")
        warp.does(36, ORANGE, "put")
    _draw(p, top, warp.segments, warp.products)
    p.paragraph(
        24,
        top + 128,
        "Step v: finishes its operands, issues all its products, decodes the samples of v + 1 and loads the words "
        "of v + 2, part after part, waits for the products, puts the tile that is done into the window, and "
        "leaves zeros. Windows are drained, and stages changed, between steps: then the loop is left and "
        "entered. By mma_sync (mainloop_sync.cuh) a warp multiplies alone and at once: it loads the next words, "
        "multiplies, and decodes; the scheduler overlaps them.",
        150,
    )
