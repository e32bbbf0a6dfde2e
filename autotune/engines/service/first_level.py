"""Gains of a live stream that follow from the level of its first samples."""

from collections.abc import Callable, Sequence

import numpy as np

from ..corrections.gains import Gains
from ..f.narrow_band import NarrowSettings
from ..f.voltage_buffers import BandSettings
from ..jobs.level import LOOKED_AT, Level, level_of, level_text, squares
from ..network.received import ReceivedSamples
from ..streams.samples import Samples

LevelledBands = Sequence[tuple[BandSettings | NarrowSettings, Gains]]
WHOLE = 0.5  # the part of a chunk's packets that must have come for its level to be final


class FirstLevel:
    """Received samples, whose first chunks set the gains.

    Each chunk sets the gains from its samples. The last chunk to do so is the first that has at least half of a
    polarisation's packets and samples that are not all 0.

    Args:
        bands: the settings of each band, and its gains, which are set.
        tell: takes a line with the level of all polarisations once it is final.
    """

    def __init__(self, source: ReceivedSamples, bands: LevelledBands, tell: Callable[[str], None]) -> None:
        self.info, self.is_live = source.info, source.is_live
        self._source, self._bands, self._tell = source, bands, tell
        self._arrays: Sequence[np.ndarray] = ()
        self._rms = np.zeros(self.info.n_pols)
        self._is_final = np.zeros(self.info.n_pols, bool)

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        """Take memory; see ``Lends``."""
        self._arrays = arrays
        self._source.lend(arrays)

    def take(self) -> tuple[int, Samples] | None:
        """Returns the next chunk; see ``Lends``."""
        taken = self._source.take()
        if taken is not None and not self._is_final.all():
            self._look(self._arrays[taken[0]], taken[1])
        return taken

    def give_back(self, number: int) -> None:
        """Take an array again; see ``Lends``."""
        self._source.give_back(number)

    def read(self, out: np.ndarray) -> Samples | None:
        """Raises TypeError: memory is lent."""
        return self._source.read(out)

    def close(self) -> None:
        """Stop receiving."""
        self._source.close()

    def _look(self, array: np.ndarray, samples: Samples) -> None:
        n = max(1, LOOKED_AT // self.info.packet)
        for pol in np.flatnonzero(~self._is_final):
            came = samples.received[pol]
            total, n_came = squares(array[pol], came[:n], self.info)
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
