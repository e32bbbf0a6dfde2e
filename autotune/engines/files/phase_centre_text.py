"""Phase centres in files: a table in TOML, and the same as text in HDF5 attributes."""

import json
from dataclasses import asdict

from ...core import schema
from ..streams.phase_centre import PhaseCentre
from ..streams.times import moment, stored_time
from . import checks

ICRS, APPARENT = ("right_ascension_deg",), ("hour_angle_deg", "longitude_deg", "time_unix")
_FIELDS = schema.members_of(
    {
        "name": schema.as_word,
        "declination_deg": checks.within(-90, 90),
        "right_ascension_deg": checks.within(0, 360),
        "hour_angle_deg": checks.within(-360, 360),
        "longitude_deg": checks.within(-360, 360),
        "time_unix": moment,
    },
    needed=("declination_deg",),
)


def phase_centre(value: object) -> PhaseCentre:
    """Checks for a phase centre, ICRS or apparent."""
    fields = _FIELDS(value)
    names = fields.keys() - {"name", "declination_deg"}
    if names not in (set(ICRS), set(APPARENT)):
        raise schema.Unsound(
            f"has {', '.join(sorted(names)) or 'a declination alone'}, must have {ICRS[0]} (ICRS) as well as its "
            f"declination_deg, or {', '.join(APPARENT)} (apparent)"
        )
    return PhaseCentre(**fields)


def phase_centre_table(centre: PhaseCentre) -> dict[str, object]:
    """Returns the table of a phase centre for TOML or JSON."""
    table = {name: value for name, value in asdict(centre).items() if value is not None}
    return table if centre.time_unix is None else {**table, "time_unix": stored_time(centre.time_unix)}


def phase_centre_text(centre: PhaseCentre) -> str:
    """Returns a phase centre as text for an attribute, which ``phase_centre_of_text`` reads."""
    return json.dumps(phase_centre_table(centre))


def phase_centre_of_text(value: object) -> PhaseCentre:
    """Checks for the text of a phase centre."""
    return phase_centre(schema.parse(schema.as_word(value).encode()))
