"""A step of ddc's tensor kernel by wgmma: what is multiplied with what, and how the ring of weights is read."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, TEAL, Picture

N_TILES = 4  # tiles under way, in this picture
TILE_COLOURS = (BLUE, GREEN, ORANGE, PURPLE)  # of tile t: t % N_TILES
BLOCK = 62


def picture() -> str:
    p = Picture(1000, 900, "ddc: the tile of a warpgroup and the ring of weights")
    p.text(24, 34, "ddc, ALGORITHM tensor by wgmma: a step of a warpgroup", "title")
    p.text(
        24,
        56,
        "Drawn with L = N_TILES = 4 tiles under way. A step brings STEP D new samples of each row, and begins a tile.",
        "muted",
    )
    _product(p, 82)
    _columns(p, 392)
    _ring(p, 24, 548)
    _moving(p, 636, 548)
    return p.svg()


def _product(p: Picture, y: float) -> None:
    """A times B is added to the sums."""
    p.text(24, y + 12, "A: samples, in registers", "bold")
    for warp in range(4):
        p.labelled(24, y + 24 + warp * 42, 220, 42, TEAL, f"warp {warp}: 16 rows")
    p.lines(
        24,
        y + 214,
        ("64 rows, a run of RUN outputs each;", "K = STEP D samples: MMAS_PER_STEP of", "16 halves or 32 bytes"),
        "small muted",
        step=16,
    )
    p.text(262, y + 115, "x", "title")
    p.text(290, y + 12, "B: weights, in shared memory", "bold")
    for i in range(N_TILES):
        p.labelled(290 + i * 74, y + 24, 74, 168, GREY, ("block", str((N_TILES - i) % N_TILES)))
    p.lines(
        290,
        y + 214,
        (
            "STEP D rows; a block's columns are a tile's.",
            "Block q, row k, output s of the tile holds",
            "h[q STEP D + k - s D], or 0: no such tap",
        ),
        "small muted",
        step=16,
    )
    p.text(604, y + 115, "+=", "title", anchor="middle")
    p.text(630, y + 12, "Sums, in registers", "bold")
    for i in range(N_TILES):
        p.labelled(630 + i * 84, y + 24, 84, 168, TILE_COLOURS[i], (f"place {i}", "STEP outputs"))
    p.lines(
        630,
        y + 214,
        (
            "64 rows, L tiles: COLUMNS_PER_MMA / 2 sums. A tile",
            "meets block 0 in the step that begins it, block L - 1 in its",
            "last one; then its outputs are done.",
        ),
        "small muted",
        step=16,
    )
    p.arrow((134, y + 284), (134, y + 262))
    p.text(24, y + 299, "decoded from the warp's own stages", "small")
    p.arrow((440, y + 284), (440, y + 262))
    p.text(440, y + 299, "mixed, scaled and split once by the block", "small", anchor="middle")
    p.arrow((798, y + 262), (798, y + 284))
    p.text(630, y + 299, "the tile that is done: to the warp's window of outputs", "small")


def _columns(p: Picture, y: float) -> None:
    """What the columns of a tile are."""
    p.line((24, y), (976, y), dashed=True)
    p.text(24, y + 26, "Columns of a tile", "bold")
    p.text(24, y + 54, "wgmma, halves")
    for i, name in enumerate(("re high", "re low", "im high", "im low")):
        p.labelled(170 + i * 72, y + 36, 72, 28, PURPLE if i < 2 else ORANGE, name, "small")
    p.text(470, y + 54, "4 for each output; high + low 2^-11, summed in float32 by the tensor core", "small muted")
    p.text(24, y + 92, "wgmma_int8, bytes")
    for i, name in enumerate(("byte 0", "byte 1", "byte 2", "0")):
        p.labelled(170 + i * 72, y + 74, 72, 28, GREY if name == "0" else BLUE, name, "small")
    p.text(
        470,
        y + 92,
        "each: re and im of up to four outputs, exact sums in int32, worth 1, 2^8, 2^16, 2^24.",
        "small muted",
    )
    p.text(
        170,
        y + 122,
        "Zeros: for samples of two bytes, whose upper bytes meet columns one byte earlier; for tiles of two outputs.",
        "small muted",
    )


def _ring(p: Picture, x: float, y: float) -> None:
    """Sums stay: the weights move."""
    p.line((24, y - 16), (976, y - 16), dashed=True)
    p.text(x, y + 10, "Sums stay (CHAIN 0, SUMS=stay): a ring of weights, unrolled", "bold")
    p.text(x, y + 50, "in memory")
    at = x + 84
    for i in range(2 * N_TILES - 1):
        p.labelled(at + i * BLOCK, y + 28, BLOCK, 34, GREY, f"block {-i % N_TILES}", "small")
    for row, step in enumerate(range(N_TILES, 2 * N_TILES + 1)):
        top = y + 82 + row * 44
        p.text(x, top + 22, f"step {step}")
        start = -step % N_TILES
        for place in range(N_TILES):
            _tile(p, at + (start + place) * BLOCK, top, step, place, (step - place) % N_TILES)
    p.lines(
        x,
        y + 320,
        (
            "Each step reads L blocks, from one block further back. Place i meets block (v - i) mod L;",
            "the tile that step v begins is at place v mod L. A thick frame: done after this step.",
        ),
        "small muted",
        step=16,
    )


def _moving(p: Picture, x: float, y: float) -> None:
    """Sums move: the weights stay."""
    p.text(x, y + 10, "Sums move (CHAIN 8, SUMS=move): no ring", "bold")
    p.text(x, y + 50, "in memory")
    at = x + 84
    for i in range(N_TILES):
        p.labelled(at + i * BLOCK, y + 28, BLOCK, 34, GREY, f"block {N_TILES - 1 - i}", "small")
    for row, step in enumerate(range(N_TILES, 2 * N_TILES + 1)):
        top = y + 82 + row * 44
        p.text(x, top + 22, f"step {step}")
        for place in range(N_TILES):
            _tile(p, at + place * BLOCK, top, step, place, N_TILES - 1 - place)
            if place > 0 and row < N_TILES:
                p.arrow((at + (place + 0.5) * BLOCK - 8, top + 34), (at + (place - 0.5) * BLOCK + 8, top + 44))
    p.lines(
        x,
        y + 320,
        (
            "The addition at a step's end writes each tile to the",
            "place before its own; place 0 is done. Half the memory.",
        ),
        "small muted",
        step=16,
    )


def _tile(p: Picture, x: float, y: float, step: int, place: int, block: int) -> None:
    """The tile at ``place``, which meets ``block`` of the weights."""
    tile = step - block
    p.labelled(x + 1, y, BLOCK - 2, 34, TILE_COLOURS[tile % N_TILES], f"tile {tile}", "small")
    if block == N_TILES - 1:
        for inset in (2, 3):
            p.line(
                (x + inset, y + inset - 1),
                (x + BLOCK - inset, y + inset - 1),
                (x + BLOCK - inset, y + 35 - inset),
                (x + inset, y + 35 - inset),
                (x + inset, y + inset - 1),
            )
