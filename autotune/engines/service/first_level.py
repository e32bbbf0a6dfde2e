"""Gains of a live stream that follow from the level of its first samples."""

from collections.abc import Callable, Sequence

import numpy as np

from ..corrections.gains import Gains
from ..f.narrow_band import NarrowSettings
from ..f.voltage_buffers import BandSettings
from ..jobs.level import LOOKED_AT, Level, level_of, level_text, squares
from ..streams.samples import SampleInfo, Samples

LevelledBands = Sequence[tuple[BandSettings | NarrowSettings, Gains]]
WHOLE = 0.5  # the part of a chunk's packets that must have come for its level to be final


class FirstLevel:
    """Looks at the first chunks of received samples, which set the gains.

    Each chunk sets the gains from its samples. The last chunk to do so is the first that has at least half of a
    polarisation's packets and samples that are not all 0.

    Args:
        bands: the settings of each band, and its gains, which are set.
        tell: takes a line with the level of all polarisations once it is final.
    """

    def __init__(self, info: SampleInfo, bands: LevelledBands, tell: Callable[[str], None]) -> None:
        self._info, self._bands, self._tell = info, bands, tell
        self._rms = np.zeros(info.n_pols)
        self._is_final = np.zeros(info.n_pols, bool)

    def look(self, array: np.ndarray, samples: Samples) -> None:
        """Look at a chunk, unless the level is final."""
        if self._is_final.all():
            return
        n = max(1, LOOKED_AT // self._info.packet)
        for pol in np.flatnonzero(~self._is_final):
            came = samples.received[pol]
            total, n_came = squares(array[pol], came[:n], self._info)
            if not total:
                continue
            self._rms[pol] = np.sqrt(total / n_came)
            self._is_final[pol] = np.count_nonzero(came) >= WHOLE * len(came)
        levels: list[Level] = []
        for settings, gains in self._bands:
            levels.append(level_of(self._rms, settings))
            gains.set(samples.time, levels[-1].gains)
        if self._is_final.all():
            self._tell(level_text(levels))
