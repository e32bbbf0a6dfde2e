"""A trial through the processes: who does what, and what happens when something fails."""

from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, TEAL, Picture

FAILURES = (
    ("A method of the definition raises, the template does not render", "definition_failed, render_failed"),
    ("The compiler refuses the source", "compile_failed"),
    ("More threads, registers or shared memory than there are", "resources: the device is not asked"),
    (
        "A child process dies",
        "It is replaced and its task tried once more; a second death: launch_failed, compile_failed",
    ),
    ("Verifying or measuring passes its deadline", "timed_out: its process is stopped, the next call starts a new one"),
    (
        "An illegal address, or another error that stays in the context",
        "launch_failed: no second try, the process is replaced",
    ),
    ("An output differs, or something else was written", "wrong: it has no time, and no place in the final round"),
    ("The clock stays down", "noisy"),
)


def picture() -> str:
    p = Picture(1000, 690, "A trial through the processes")
    p.text(24, 34, "A trial through the processes", "title")
    p.text(
        24,
        56,
        "Time goes to the right. Compiles of many configs are under way; the device has one config at a time.",
        "muted",
    )
    _lane(p, 76, 100, "parent", "one process")
    _lane(p, 190, 116, "compile", "cores - 1 processes")
    _lane(p, 320, 100, "device", "one process")
    _parent(p, 102)
    _compile(p, 204)
    _device(p, 346)
    _failures(p, 452)
    return p.svg()


def _lane(p: Picture, y: float, height: float, name: str, what: str) -> None:
    p.box(14, y, 972, height, "#f6f8fa", edge="#d0d7de")
    p.text(26, y + height / 2, name, "bold")
    p.text(26, y + height / 2 + 18, what, "small muted")


def _parent(p: Picture, y: float) -> None:
    for x, width, fill, lines in (
        (160, 92, GREY, ("propose", "the search")),
        (268, 92, GREY, ("render", "source, hash")),
        (520, 82, GREY, ("limits", "geometry")),
        (872, 104, TEAL, ("record", "a line, on disk")),
    ):
        p.labelled(x, y, width, 48, fill, lines)
    p.arrow((252, y + 24), (266, y + 24))
    p.arrow((976, y + 8), (982, y + 8), (982, y - 14), (206, y - 14), (206, y - 2), dashed=True)
    p.text(738, y + 4, "the outcome: the search learns from it", "small muted", anchor="middle")


def _compile(p: Picture, y: float) -> None:
    p.labelled(290, y, 210, 42, BLUE, ("compile", "cache, deadline"))
    p.labelled(290, y + 50, 210, 42, PURPLE, ("inputs and reference", "once a sweep, NumPy float64"))
    p.labelled(160, y, 110, 42, "#ffffff", "other configs", "small")
    p.labelled(520, y, 110, 42, "#ffffff", "other configs", "small")
    p.arrow((320, 150), (320, y - 2))
    p.arrow((486, y), (486, 128), (518, 128))
    p.text(330, 178 + 4, "source", "small muted")
    p.text(480, 178 + 4, "binary, registers", "small muted", anchor="end")


def _device(p: Picture, y: float) -> None:
    for x, width, fill, lines in (
        (540, 104, GREEN, ("verify", "edge sizes")),
        (656, 104, ORANGE, ("measure", "cold L2, clock")),
        (772, 104, GREEN, ("check again", "the timed size")),
    ):
        p.labelled(x, y, width, 48, fill, lines)
    p.arrow((644, y + 24), (654, y + 24))
    p.arrow((760, y + 24), (770, y + 24))
    p.arrow((592, 150), (592, 190), (650, 190), (650, 330), (592, 330), (592, y - 2))
    p.arrow((500, 275), (708, 275), (708, y - 2))
    p.text(660, 206, "one call, a deadline for each of both", "small muted")
    p.text(508, 270, "a case, in files", "small muted")
    p.arrow((850, y), (850, 126), (870, 126))
    p.text(844, 240, "median, verdict,", "small muted", anchor="end")
    p.text(844, 256, "or a failure", "small muted", anchor="end")
    p.text(160, y + 16, "It opens the device and keeps its session. Buffers are", "small muted")
    p.text(160, y + 33, "poisoned, and lie between guarded addresses.", "small muted")


def _failures(p: Picture, y: float) -> None:
    p.text(
        24,
        y,
        "What happens when it goes wrong: one row of the record, with its status, whatever a variant does",
        "bold",
    )
    for i, (what, then) in enumerate(FAILURES):
        top = y + 14 + i * 26
        p.box(24, top, 952, 24, "#f6f8fa" if i % 2 else "#ffffff", radius=2, edge="#d0d7de")
        p.text(34, top + 17, what, "small")
        p.text(440, top + 17, then, "small")
