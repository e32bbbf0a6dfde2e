"""Delays of antennas in TOML: a table for each piece of a delay model.

    [[delay]]
    antenna = "m000"       # without it, all antennas that are not named
    pol = 0                # without it, both polarisations
    start = 4096           # the piece holds from this timestamp on, in samples
    delay = 12.25          # samples; each of these four may be left out, and is 0 then
    rate = 1.5e-9          # samples per sample
    phase = -0.7           # radians
    phase_rate = 2e-6      # radians per sample

    [phase_centre]         # optional: the direction whose fringes these delays stop, for the headers of visibilities
    name = "3C 273"
    right_ascension_deg = 187.2779    # ICRS; or hour_angle_deg, longitude_deg and time_unix of the apparent place
    declination_deg = 2.0524

``delays.Piece`` defines the values. Pieces of one antenna and polarisation are in the order of time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from ...core import schema
from ..corrections.delays import BEFORE, LONGEST, DelayModel, Piece
from ..streams.phase_centre import PhaseCentre
from . import checks
from .phase_centre_text import phase_centre, phase_centre_table
from .reading import refuse, refuse_existing
from .toml import checked, read_toml, written

MOST_BYTES = 1 << 26
N_POLS = 2

DELAY_FIELDS: dict[str, schema.Check] = {
    "antenna": schema.as_word,
    "pol": checks.integer(0, N_POLS - 1),
    "start": checks.integer(BEFORE, checks.MOST_TIME - 1),
    "delay": checks.below(LONGEST),
    "rate": checks.below(1),
    "phase": checks.real,
    "phase_rate": checks.real,
}
DELAY = schema.members_of(DELAY_FIELDS, needed=("start",))
TABLES = schema.members_of(
    {"delay": schema.sequence_of(lambda table: table), "phase_centre": lambda table: table}, needed=("delay",)
)


def read_delays(path: str | Path) -> dict[str, tuple[DelayModel, DelayModel]]:
    """Returns the delay models of both polarisations, by the antenna's name.

    The name ``checks.ALL_OTHERS``, "*", stands for the antennas that no table names.

    Raises:
        UsageError: for a file that cannot be read or is wrong, in one line with the table's number, from 1.
    """
    path = Path(path)
    if re.fullmatch(r"[-+.\d,eE]+", str(path)) and not path.exists():
        refuse(path, "it is not a file of delays; a number belongs into array.toml, as delays = 21 of its antenna")
    models_of: dict[str, tuple[DelayModel, DelayModel]] = {}
    for number, table in enumerate(checked(path, "it", TABLES, read_toml(path, MOST_BYTES))["delay"], 1):
        row = checked(path, f"[[delay]] {number}", DELAY, table)
        antenna, pol = row.pop("antenna", checks.ALL_OTHERS), row.pop("pol", None)
        models, piece = models_of.setdefault(antenna, (DelayModel(), DelayModel())), Piece(**row)
        for p in range(N_POLS) if pol is None else (pol,):
            before = models[p].pieces[-1]
            if len(models[p].pieces) > 1 and before.start >= piece.start:
                earlier = f"one before it of antenna {antenna!r}, pol {p} at {before.start}"
                refuse(
                    path,
                    f"[[delay]] {number} starts at sample {piece.start}, {earlier}: they must be in the order of time",
                )
            models[p].add(piece)
    return models_of


def read_phase_centre(path: str | Path) -> PhaseCentre | None:
    """Returns the direction whose fringes a file's delays stop, or None. Raises UsageError for a wrong direction."""
    path = Path(path)
    table = checked(path, "it", TABLES, read_toml(path, MOST_BYTES)).get("phase_centre")
    return None if table is None else checked(path, "[phase_centre]", phase_centre, table)


def write_delays(
    path: str | Path, delays: Mapping[str, Sequence[DelayModel]], centre: PhaseCentre | None = None
) -> None:
    """Writes the delay models of antennas' polarisations, by the antenna's name or ``checks.ALL_OTHERS``.

    ``centre``: the direction whose fringes the delays stop.

    Raises:
        UsageError: when the file exists or cannot be written.
    """
    path = Path(path)
    tables = [table for antenna, models in delays.items() for table in _tables(antenna, models)]
    named = [("[[delay]]", table) for table in tables]
    named += [] if centre is None else [("[phase_centre]", phase_centre_table(centre))]
    text = "\n".join(f"{name}\n" + "".join(written(*each) for each in table.items()) for name, table in named)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        refuse_existing(path)
    except OSError as error:
        refuse(path, f"it cannot be written: {error.strerror}")


def _tables(antenna: str, models: Sequence[DelayModel]) -> list[dict[str, object]]:
    """Returns a table for each piece, without ``pol`` if all polarisations have the same pieces."""
    alike = all(model.pieces == models[0].pieces for model in models)
    name = {} if antenna == checks.ALL_OTHERS else {"antenna": antenna}
    return [
        {**name, **({} if alike else {"pol": pol}), **asdict(piece)}
        for pol, model in enumerate(models[:1] if alike else models)
        for piece in model.pieces
        if piece != Piece(BEFORE) or len(model.pieces) == 1
    ]
