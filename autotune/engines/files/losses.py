"""Losses of recordings: each one is a line for the user, and data for a program."""

from pathlib import Path

from ...core.errors import one_line
from .reading import Bytes, Tell, cut_text

CUT_OFF, DAMAGED, OUT_OF_ORDER = "cut off", "damaged", "out of order"
DOUBLES, LEFT_OUT, LONGER = HARMLESS = "doubles", "left out", "longer"  # all that the header states is read


class DataLoss(str):
    """A line that ``tell`` takes as any other one. ``n`` counts what is lost, in words: bytes, frames, blocks."""

    path: Path
    what: str
    n: int
    unit: str

    @property
    def is_harmless(self) -> bool:
        """Returns whether all data of the recording are read in spite of it."""
        return self.what in HARMLESS

    def as_json(self) -> dict[str, object]:
        """Returns the loss for a summary."""
        return {"file": str(self.path), "what": self.what, "n": self.n, "unit": self.unit, "line": str(self)}


class Losses:
    """The losses of one recording. They are told when it is closed, since a file may grow until then."""

    def __init__(self, path: Path, tell: Tell) -> None:
        self._path, self._tell = path, tell
        self._found: dict[str, DataLoss] = {}

    def note(self, what: str, n: int, unit: str, text: str) -> None:
        """Notes a loss in place of an earlier one of its kind; without ``text`` there is none any more."""
        self._found.pop(what, None)
        if text:
            loss = self._found[what] = DataLoss(one_line(f"{self._path}: {text}"))
            loss.path, loss.what, loss.n, loss.unit = self._path, what, n, unit

    def end_of_samples(self, file: Bytes, n: int, n_stated: int | None, is_whole: bool, n_left: int) -> None:
        """Notes that a file does not end after its last sample, but ``n_left`` bytes later, or too early.

        ``n``: samples of each polarisation in it. ``n_stated``: those that its header states; they may all be there.
        """
        for what in (CUT_OFF, LEFT_OUT):
            self._found.pop(what, None)
        if n_stated is not None and not is_whole:
            text = cut_text(file, f"after {n} of {n_stated} samples of each polarisation")
            self.note(CUT_OFF, n_stated - n, "samples", text)
        elif n_left > 0:
            more = f"it has {n_left} bytes after its last stated sample: they are left out"
            text = more if is_whole else cut_text(file, "in the middle of a sample", n_left)
            self.note(LEFT_OUT if is_whole else CUT_OFF, n_left, "bytes", text)

    def told(self) -> None:
        """Passes the losses on, once."""
        for loss in self._found.values():
            self._tell(loss)
        self._found.clear()


class Heard:
    """Takes lines for the user, passes them on, and keeps the losses among them. No loss is told twice."""

    def __init__(self, tell: Tell) -> None:
        self.losses: list[DataLoss] = []
        self._tell = tell

    def __call__(self, line: str) -> None:
        if isinstance(line, DataLoss):
            if line in self.losses:
                return
            self.losses.append(line)
        self._tell(line)
