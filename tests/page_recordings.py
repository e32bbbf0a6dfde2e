"""Small recordings for readers of the pages of engines, who have recordings of their own.

Each function writes into the current folder what one page names.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from autotune.engines.sky.simulated_recording import Recording

from .engines.files.makers import vdif_frame
from .engines.files.test_mark5b import SAMPLE as MARK5B

SKY = Path(__file__).resolve().parents[1] / "docs" / "example" / "sky.toml"
FRAME = 8000  # samples of one thread


def observed_night() -> None:
    """Writes the folder ``night``: three antennas of the tutorial's sky, 2^20 samples each."""
    text = re.sub(r"n_antennas = \d+", "n_antennas = 3", SKY.read_text())
    Path("small.toml").write_text(re.sub(r"n_samples = \d+", f"n_samples = {1 << 20}", text))
    for _ in Recording(Path("small.toml"), Path("night")).write():
        pass


def vdif_scan(
    name: str, station: str, frames: range, n_channels: int = 1, n_threads: int = 2, lost: tuple[int, ...] = ()
) -> None:
    """Writes noise of 8 bits, from the start of 2025 on, without the frames that are ``lost``."""
    rng, path = np.random.default_rng(frames.start), Path(name)
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        for number in frames:
            for thread in range(n_threads):
                payload = rng.normal(128, 20, FRAME).astype(np.uint8).tobytes()
                if number not in lost:
                    frame = vdif_frame(payload, 0, number, thread=thread, n_channels=n_channels, station=station)
                    file.write(frame)


def scans_of_an_array() -> None:
    """Writes two scans of On that follow each other, and one of Wb, whose polarisations are channels."""
    vdif_scan("night/On.0000.vdif", "On", range(60))
    vdif_scan("night/On.0001.vdif", "On", range(60, 120))
    vdif_scan("night/Wb.vdif", "Wb", range(240), n_channels=2, n_threads=1)


def two_stations() -> None:
    """Writes the recordings of two stations, of which Ef has lost frames."""
    vdif_scan("On.vdif", "On", range(60))
    vdif_scan("Ef.vdif", "Ef", range(60), lost=(20, 41))


def swapped_station() -> None:
    """Writes two stations that get one noise, 21 samples later at Ef, whose polarisations are exchanged."""
    rng, n = np.random.default_rng(3), 60 * FRAME
    sky = rng.normal(0, 10, (2, n + 21))
    for station, late, order in (("On", 21, (0, 1)), ("Ef", 0, (1, 0))):
        rows = sky[list(order), late : late + n] + rng.normal(0, 20, (2, n))
        bytes_ = np.rint(rows + 128).clip(0, 255).astype(np.uint8).reshape(2, 60, FRAME)
        frames = (
            vdif_frame(bytes_[thread, number].tobytes(), 0, number, thread=thread, station=station)
            for number in range(60)
            for thread in range(2)
        )
        Path(f"{station}.vdif").write_bytes(b"".join(frames))


def one_scan() -> None:
    vdif_scan("scan.vdif", "Wb", range(20))


def mark5b_scan() -> None:
    shutil.copy(MARK5B, "scan.m5b")


RECORDINGS: dict[str, Callable[[], None]] = {
    "engines": observed_night,
    "engines-arrays": scans_of_an_array,
    "engines-cpu": observed_night,
    "engines-evidence": two_stations,
    "engines-files": one_scan,
    "engines-formats": mark5b_scan,
    "engines-phase-centre": observed_night,
    "engines-polarisations": swapped_station,
    "engines-weights": two_stations,
}
