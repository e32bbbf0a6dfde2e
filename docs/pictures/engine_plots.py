"""What `plot_visibilities` shows: three antennas under two sources, without delays, and theory beside them.

Dumps are made of theory and noise here, so that no engine has to run. The text of the picture depends on the versions
of matplotlib and Pillow, which it names: where others are installed, or none, it stays as it is. Delete it to make it
with others.
"""

import re
import tempfile
from importlib.metadata import PackageNotFoundError, version
from math import radians, sqrt
from pathlib import Path

import numpy as np

from autotune.engines.plots.visibility_picture import plot_visibilities
from autotune.engines.plots.visibility_summary import VisibilitySummary
from autotune.engines.sky.expected import theory_of
from autotune.engines.sky.geometry import RANDOM, array_positions
from autotune.engines.sky.spec import Antenna, PointSource, Sky
from autotune.engines.streams.visibilities import MISSING, VisibilityInfo

HERE = Path(__file__).with_suffix(".svg")
N, C, N_DUMPS, SPECTRA, RATE_HZ = 3, 20, 18, 1 << 14, 4e6
DUMP, POWER = 2 * C * SPECTRA, 700  # samples; |v|^2 of a voltage
J, I = np.tril_indices(N)  # noqa: E741


def picture() -> str:
    try:
        versions = f"<!-- matplotlib {version('matplotlib')}, pillow {version('pillow')} -->"
    except PackageNotFoundError:
        versions = ""
    if HERE.exists() and not (versions and versions in HERE.read_text()):
        return HERE.read_text()
    sky = _sky()
    info = VisibilityInfo(C, DUMP, SPECTRA, tuple(sky.info(each) for each in sky.antennas), 1.4e9, RATE_HZ / (2 * C))
    summary, theory = VisibilitySummary(info), theory_of(sky, info)
    rng = np.random.default_rng(1)
    for number in range(N_DUMPS):
        present = np.array([True, True, not 11 <= number < 13])
        weights = np.outer(SPECTRA * (present[I] & present[J]), np.ones(4)).astype(np.uint32)
        summary.write(number * DUMP, _dump(theory, info, number, present, rng), weights, 0)
    with tempfile.TemporaryDirectory() as folder:
        plot_visibilities(summary, Path(folder) / "x.svg", theory)
        made = (Path(folder) / "x.svg").read_text()
    return _shorter(made) + versions + "\n"


def _sky() -> Sky:
    places = array_positions(RANDOM, N, 800.0, (radians(-30.7), radians(21.4), 0.0), np.random.default_rng(6))
    return Sky(
        sample_rate_hz=RATE_HZ,
        sample_bits=10,
        n_pols=2,
        n_samples=N_DUMPS * DUMP,
        first_timestamp=0,
        seed=1,
        hour_angle=radians(20),
        declination=radians(-25),
        noise_level=20.0,
        antennas=tuple(Antenna(f"m{k:03d}", (x, y, z)) for k, (x, y, z) in enumerate(places.tolist())),
        sources=(PointSource(0.0, 0.0, 0.3), PointSource(1.5e-3, -1e-3, 0.2)),
        centre_frequency_hz=1.4e9,
    )


def _dump(theory, info, number, present, rng):
    """Returns int32 [C, n_baselines, 4, 2]: both polarisations have the same sky, and their own noise."""
    channels = 1.4e9 + (np.arange(C) - C / 2) * info.channel_width_hz
    band = 1 + 0.4 * np.sin(np.linspace(0, 7, C))
    made = np.zeros((C, len(I), 4, 2), np.int32)
    for baseline, (i, j) in enumerate(zip(I.tolist(), J.tolist(), strict=True)):
        times = np.array([(number + 0.5) * DUMP / RATE_HZ])
        rho = theory(i, j, times, channels, integration_s=DUMP / RATE_HZ)[0]
        for product in (0, 3):
            noise = rng.normal(0, sqrt(0.5 / SPECTRA), (C, 2)) @ [1, 0 if i == j else 1j]
            v = POWER * SPECTRA * band * (1 + 0.15 * i) ** 0.5 * (1 + 0.15 * j) ** 0.5 * (rho + noise)
            made[:, baseline, product] = np.rint(np.column_stack([v.real, v.imag]))
    made[:, ~(present[I] & present[J])] = MISSING, 1
    return made


def _shorter(svg: str) -> str:
    """Returns the same picture in a third of the text: styles are classes, and places tenths of a point."""
    for what, instead in (
        (r"<!--.*?-->|<metadata>.*?</metadata>|<!DOCTYPE.*?>|<\?xml.*?\?>", ""),
        (r'<g id="[^"]*"', "<g"),
        (r"('DejaVu Sans'), [^;]*?(sans-serif)", r"\1, \2"),
        (r' transform="rotate\(-0 [^"]*\)"', ""),
        (r"<g/>", ""),
        (r"xlink:href", "href"),
        (r"\s*\n\s*", "\n"),
        (r'(width|height)="([\d.]+)pt"', r'\1="\2"'),
        (r"<[^>]*>", lambda tag: re.sub(r"(?<=[ \"(])-?\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}", tag[0])),
    ):
        svg = re.sub(what, instead, svg, flags=re.DOTALL)
    svg = re.sub(r"\n([MLCz\"])", r"\1", _ungrouped(svg))
    styles = list(dict.fromkeys(re.findall(r'style="([^"]*)"', svg)))
    for number, style in enumerate(styles):
        svg = svg.replace(f'style="{style}"', f'class="c{number}"')
    for number, name in enumerate(dict.fromkeys(re.findall(r' id="(m\w+|p\w+)"', svg))):
        svg = re.sub(rf'(?<=["#]){name}(?=[")])', f"{name[0]}{number}", svg)
    rules = "".join(f".c{number}{{{style}}}" for number, style in enumerate(styles))
    return svg.replace("</style>", f"{rules}</style>", 1).strip() + "\n"


def _ungrouped(svg: str) -> str:
    """Returns the same picture without groups that have no attributes."""
    kept, bare = [], []
    for part in re.split(r"(<g\b[^>]*>\n?|</g>\n?)", svg):
        if part.startswith("<g"):
            bare.append(part.strip() == "<g>")
        if not (part.startswith(("<g", "</g")) and (bare[-1] if part.startswith("<g") else bare.pop())):
            kept.append(part)
    return "".join(kept)
