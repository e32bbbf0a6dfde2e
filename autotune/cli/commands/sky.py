"""`autotune sky` simulates the recordings of an array from a description of the sky."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ...engines.sky.simulated_recording import Recording
from ..console import ProgressLine, ProgressText, note, stdout
from ..stopped import stopped


def sky(
    description: Annotated[
        Path, typer.Argument(metavar="SKY", help="The description, in TOML: frequencies in Hz, positions in m.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the recording: an empty or a new one.")],
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=2**62, help="Seed of all noise, if SKY does not state it.")
    ] = None,
) -> None:
    """Simulate the recordings of an array's antennas: noise, point sources, tones, missing samples.

    It writes packed samples with a header for each antenna, the delays that stop the fringes of the phase centre
    (delays.toml), and a copy of SKY (sky.toml). The same SKY and seed give the same samples.
    """
    recording = Recording(description, out, seed)
    settings = recording.sky
    n, seconds = len(settings.antennas), settings.n_samples / settings.sample_rate_hz
    samples = f"{settings.n_samples} samples of {settings.sample_bits} bits ({seconds:.4g} s)"
    note(f"{n} antennas, {settings.n_pols} polarisations, {samples} to {out}")
    try:
        _follow(recording.write(), recording.n_blocks)
    except KeyboardInterrupt:
        raise stopped(f"the recording is incomplete; remove {out} and run the same command again") from None
    stdout.print(str(out), markup=False)


def _follow(blocks: Iterable[int], n_total: int) -> None:
    """Writes all blocks, and shows how many are written: as a bar on a terminal, else as lines."""
    with ProgressLine(n_total) as line:
        for number in blocks:
            if line.update(number + 1, ProgressText("blocks")):
                note(f"  block {number + 1} of {n_total}{line.left(number + 1)}")
