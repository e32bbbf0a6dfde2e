"""The settings of the dumps that ``correlate`` makes, in calls and commands alike."""

from dataclasses import dataclass
from typing import Annotated

from ...system.limits import COUNT
from ...system.setting import Setting, check_settings, with_old_names


@with_old_names
@dataclass(frozen=True, kw_only=True)
class Dumps:
    """The dumps of visibilities. They start at multiples of their length.

    ``complete_dumps``: a baseline that lacks any spectrum of a dump has the values (-2^31, 1) there, and the weight 0.
    Otherwise a dump adds the spectra that came, and its weights count them.
    """

    accumulate: Annotated[
        int,
        Setting(
            "How many batches are added into one dump. One batch has --spectra-per-heap spectra.",
            COUNT,
            was=("batches_per_dump",),
        ),
    ]
    complete_dumps: Annotated[
        bool, Setting("Drop the data of a baseline from a dump (weight 0) unless all of its spectra are there.")
    ] = False

    def __post_init__(self) -> None:
        check_settings(self)
