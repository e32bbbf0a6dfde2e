"""Writes the figures that pages take from elsewhere, and nobody types.

    python docs/figures.py

- docs/record.md: the tables of what records hold, and of checks, from the declarations in autotune/records.
- docs/settings.md: the settings of a sweep, from their declarations.
- README.md: the table of kernels, and by how much winners of ddc beat the default, from results/.

`tests/test_docs.py` compares what is written with what this makes.
"""

import re
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from autotune.analysis.show import Overview, overview
from autotune.core.units import seconds_text
from autotune.records.about import About
from autotune.records.checks_made import CHECKS
from autotune.records.figure import figures_of
from autotune.records.outcome import Finalist, Outcome
from autotune.records.record import read_sweeps
from autotune.records.trial import Trial
from autotune.sweep.settings import Settings
from autotune.system.setting import CALLS, COMMANDS, FILES, declared

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results" / "NVIDIA_H200"
TABLES = {  # heads of docs/record.md -> the records below them
    f"| {what} | unit | content |\n| --- | --- | --- |\n": records
    for what, records in (
        ("column", (Trial,)),
        ("of sweep.json", (About,)),
        ("of verdict.json", (Outcome, Finalist)),
    )
}
OF_TRIAL = figures_of(Trial)
OF_CHECKS = "| check | what holds |\n| --- | --- |\n"
SETTINGS = "| setting | what it does | default |\n| --- | --- | --- |\n"
PLACES = {CALLS: " (*calls*)", COMMANDS: " (*not in files*)", FILES: ""}
KERNELS = "| kernel | what it does | measured | time | of the roofline |\n| --- | --- | --- | --- | --- |\n"
SPEED_UP = re.compile(r"(?<=median)(\s+winner\s+is\s+)[\d.]+")
SHOWN = (
    (
        "mix, low-pass filter and decimate packed samples",
        "2 x 32 Mi samples, decimation 8, 128 taps",
        "ddc/taps=128,decimation=8,sample_bits=10,n_pols=2,n_samples=33554432",
    ),
    (
        "polyphase filter bank, front end: packed samples to weighted sums",
        "2 x 64 Mi samples, 16 taps, 1024 channels",
        "pfb_fir/taps=16,n_channels=1024,sample_bits=10,n_pols=2,n_spectra=32768,n_samples=67141632",
    ),
    (
        "spectra to quantised voltages: delay, phase, gain, rounding, transpose",
        "2 x 64 Mi samples, 1024 channels",
        "postproc/n_channels=1024,nyquist=1,n_pols=2,bits=8,layout=batches,times_per_block=16,spectra_per_heap=256,"
        "n_receivers=1,n_heaps=128",
    ),
    (
        "these two and the FFT between them, in one launch or two",
        "2 x 64 Mi samples, 16 taps, 1024 channels",
        "channelise/taps=16,n_channels=1024,sample_bits=10,*,n_samples=67141632",
    ),
    (
        "the same",
        "2 x 64 Mi samples, 16 taps, 32768 channels",
        "channelise/taps=16,n_channels=32768,sample_bits=10,*,n_samples=68157440",
    ),
    (
        "products of all pairs of receivers, integrated, on tensor cores",
        "480 channels of 3072 samples of 8 bits, 256 receivers",
        "correlate/bits=8,layout=blocks,n_receivers=256,n_times=16,overwrites=True,*,n_channels=480,*",
    ),
    (
        "a correlator's dump: accumulators to saturated 32 bits",
        "256 receivers, 64 channels, 8 accumulators",
        "accumulate/n_accumulators=8,n_channels=64,n_receivers=256",
    ),
    (
        "int4 to float32, float16 or bfloat16",
        "4.3 GB of float32",
        "dequantize/out_type=float32,scale_offset=False,missing=False,n_beams=2,n_freqs=16384,n_times=32768",
    ),
)


def columns(record: type[Any]) -> str:
    """Returns the rows of a record's figures, one for neighbours that share their meaning."""
    rows = []
    own = {name: figure for name, figure in figures_of(record).items() if record is Trial or name not in OF_TRIAL}
    for meaning, group in groupby(own.items(), key=lambda item: item[1].meaning):
        members = list(group)
        names = ", ".join(f"`{name}`" for name, _ in members)
        units = ", ".join(dict.fromkeys(figure.unit for _, figure in members if figure.unit))
        rows.append(f"| {names} | {units + ' ' * bool(units)}| {meaning} |\n")
    return "".join(rows)


def settings() -> str:
    """Returns the rows of a sweep's settings."""
    rows = []
    for one in declared(Settings).values():
        option = f", `{one.setting.option}`" if one.setting.option else ""
        what = one.setting.help.replace("|", "\\|")
        rows.append(f"| `{one.name}`{option} | {what}{PLACES[one.setting.where]} | {'; '.join(one.limits).removeprefix('default: ')} |\n")
    return "".join(rows)


def kernels() -> str:
    """Returns the rows of README's kernels: the winner's median, and its share of the roofline."""
    rows = []
    for what, problem, pattern in SHOWN:
        (line,) = _recorded(pattern)
        page = f"[{line.kernel}](docs/kernels/{line.kernel}.md)"
        rows.append(f"| {page} | {what} | {problem} | {seconds_text(line.best_s)} | {100 * line.efficiency:.0f} % |\n")
    return "".join(rows)


def speed_up() -> str:
    """Returns how many times as fast as the default the median winner of ddc is."""
    return f"{median(line.speed_up for line in _recorded('ddc/*') if line.speed_up):.2f}"


def record_page(page: str) -> str:
    """Returns the text of docs/record.md with the tables as they are now."""
    for head, records in TABLES.items():
        page = _with_rows(page, head, "".join(map(columns, records)))
    return _with_rows(page, OF_CHECKS, "".join(f"| `{name}` | {what} |\n" for name, what in CHECKS.items()))


def readme(page: str) -> str:
    """Returns the text of README with the figures as they are now."""
    page, n_found = SPEED_UP.subn(rf"\g<1>{speed_up()}", page)
    assert n_found == 1, "README says once how many times as fast the median winner is"
    return _with_rows(page, KERNELS, kernels())


def _recorded(pattern: str) -> list[Overview]:
    folders = sorted(path.parent for path in RECORDS.glob(f"{pattern}/sweep.json"))
    return [overview(sweep) for sweep in read_sweeps(folders)[0]]


def _with_rows(page: str, head: str, rows: str) -> str:
    before, after = page.split(head)
    return before + head + rows + after[after.index("\n\n") + 1 :]


def settings_page(page: str) -> str:
    """Returns the text of docs/settings.md with the table as it is now."""
    return _with_rows(page, SETTINGS, settings())


PAGES = {
    ROOT / "docs" / "record.md": record_page,
    ROOT / "docs" / "settings.md": settings_page,
    ROOT / "README.md": readme,
}

if __name__ == "__main__":
    for path, renewed in PAGES.items():
        path.write_text(renewed(path.read_text()))
