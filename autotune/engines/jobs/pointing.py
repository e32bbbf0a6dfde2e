"""Points an array at a phase centre: delays that stop its fringes are added to those that the user gives."""

from collections.abc import Sequence
from dataclasses import replace

from ...core import schema
from ...core.errors import UsageError
from ..corrections.directions import direction_of_text
from ..corrections.fringe_stopping import stopping_models
from ..files.phase_centre_text import phase_centre, phase_centre_table
from ..files.reading import Tell
from ..files.statements import lowest_hz
from ..streams.phase_centre import PhaseCentre
from ..streams.samples import SampleInfo
from .band_settings import Bands


def pointed(bands: Bands, infos: Sequence[SampleInfo], at: PhaseCentre | str, tell: Tell) -> list[Bands]:
    """Returns bands for each antenna, whose delays are those of ``bands`` plus those that stop the fringes.

    Args:
        infos: the headers of all antennas; their times have the same zero.
        at: a direction, or its right ascension and declination as ``direction_of_text`` reads them.

    Raises:
        UsageError: for a wrong direction, when the delays of ``bands`` have one already, and as ``stopping_models``.
    """
    centre = direction_of_text(at) if isinstance(at, str) else _checked(at)
    if (stopped := bands.direction()) is not None:
        raise UsageError(
            f"the delays that were given stop the fringes of {stopped.name} already: leave out either the phase centre "
            "or these delays; delays of instruments alone name no [phase_centre]"
        )
    for info in infos:
        if info.centre_frequency_hz is not None and (low_hz := lowest_hz(info)) < 0:
            why = "fringes of a sky are stopped at its frequencies: give centre_frequency_hz in Hz"
            raise UsageError(f"the band of antenna {info.antenna} begins at {low_hz:g} Hz, and {why}")
    models = stopping_models(infos, centre, bands.middle(infos[0]), tell)
    return [
        replace(bands, delays=[each.plus(model) for each in bands.delays_of(info)], phase_centre=centre)
        for info, model in zip(infos, models, strict=True)
    ]


def _checked(centre: PhaseCentre) -> PhaseCentre:
    """Returns the phase centre, checked. Raises UsageError when a value of it is wrong."""
    try:
        return phase_centre(phase_centre_table(centre))
    except schema.Unsound as error:
        raise UsageError(f"a phase centre {error}") from None
