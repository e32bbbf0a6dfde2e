"""Writes a simulated recording: each antenna's samples, the delays of the phase centre, and the sky's description."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from ...core.files import write_whole
from ..files.delay_file import write_delays
from ..files.formats.raw import RawFile
from ..files.packing import pack_samples
from ..files.reading import refuse
from .description import read_sky
from .sky_samples import BLOCK, SkySamples


class Recording:
    """A folder that a simulated recording is written to.

    It gets ``x.toml`` and ``x.bin`` of each antenna x, ``delays.toml``, and ``sky.toml`` as it was read, with the seed.

    Args:
        sky: path of sky.toml.
        folder: an empty folder, which is made if it does not exist.
        seed: the seed, if sky.toml has none.

    Raises:
        UsageError: when sky.toml is wrong, or the folder is not empty or cannot be made.
    """

    def __init__(self, sky: Path, folder: Path, seed: int | None = None) -> None:
        self.sky, self.folder = read_sky(sky, seed), folder
        self._samples = SkySamples(self.sky)
        self.n_blocks = self._samples.n_blocks
        text = b"" if seed is None else f"seed = {seed}\n".encode()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                refuse(folder, "it is not empty; give another folder, or remove what is in it")
            write_whole(folder / "sky.toml", text + sky.read_bytes())
        except OSError as error:
            refuse(folder, f"it cannot be written to: {error.strerror}")
        models = dict(zip([each.name for each in self.sky.antennas], self._samples.track.models(), strict=True))
        delays = {name: (model,) for name, model in models.items()}
        write_delays(folder / "delays.toml", delays, self.sky.phase_centre)

    def write(self) -> Iterator[int]:
        """Writes block by block. Yields each block's number after it is written.

        Raises:
            UsageError: when a file cannot be written. The text names the file.
        """
        sky = self.sky
        with ExitStack() as files:
            opened = []
            for antenna in sky.antennas:
                missing = [(hole.pol, hole.start, hole.n_samples) for hole in sky.holes if hole.antenna == antenna.name]
                file = RawFile(self.folder / f"{antenna.name}.toml", sky.info(antenna), missing)
                files.callback(file.close)
                opened.append((file, missing))
            for number in range(self.n_blocks):
                for (file, missing), samples in zip(opened, self._samples.block(number), strict=True):
                    for pol, first, n in missing:
                        at = first - number * BLOCK
                        samples[pol, max(0, at) : max(0, at + n)] = 0
                    file.write(pack_samples(samples, sky.sample_bits))
                yield number
