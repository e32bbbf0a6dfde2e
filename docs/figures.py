"""Writes the figures that pages take from elsewhere, and nobody types.

    python docs/figures.py

- docs/record.md: the tables of what records hold, and of checks, from the declarations in autotune/records.
- docs/settings.md, docs/network-files.md, docs/engines-arrays.md: settings and keys of files, from their declarations.
- README.md: the table of kernels, and by how much winners of ddc beat the default, from results/.

`tests/test_docs.py` compares what is written with what this makes.
"""

import re
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from autotune.analysis.show import Overview, overview
from autotune.campaign.campaign_plan import CampaignFile
from autotune.core.units import seconds_text
from autotune.engines.digitiser.packet_faults import Faults
from autotune.engines.files.array_file import ArrayAntenna
from autotune.engines.files.header_fields import header_fields
from autotune.engines.jobs.band_settings import Narrow
from autotune.engines.service.dsim_service import DsimPlace, DsimSettings
from autotune.engines.service.f_service import FBand, FServiceSettings
from autotune.engines.service.stream_places import ListeningPlace, SendingPlace
from autotune.engines.service.x_service import XServiceSettings
from autotune.records.about import About
from autotune.records.checks_made import CHECKS
from autotune.records.figure import figures_of
from autotune.records.outcome import Finalist, Outcome
from autotune.records.record import read_sweeps
from autotune.records.trial import Trial
from autotune.sweep.settings import Settings
from autotune.system.setting import CALLS, COMMANDS, FILES, Declared, declared, in_files

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
OF_FILE = "| key of {} | what it does | default |\n| --- | --- | --- |\n"
IN_ARRAY = {name: one for name, one in header_fields().items() if name != "antenna"}
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
        rows.append(f"| `{one.name}`{option} | {_what(one)}{PLACES[one.setting.where]} | {_usual(one)} |\n")
    return "".join(rows)


def keys(kind: type[Any], table: str = "", without: type[Any] | None = None) -> str:
    """Returns the rows of a file's keys, or of its ``table``'s, except ``without``'s; neighbours alike share one."""
    left_out = {} if without is None else in_files(without)
    own = [one for key, one in in_files(kind).items() if key not in left_out]
    groups = groupby(own, key=lambda one: (_what(one), _usual(one)))
    rows = [(", ".join(f"`{one.key}`" for one in alike), what, usual) for (what, usual), alike in groups]
    return "".join(f"| {table}{names} | {what} | {usual} |\n" for names, what, usual in rows)


def _what(one: Declared) -> str:
    return one.setting.help.replace("|", "\\|")


def _usual(one: Declared) -> str:
    usual = "needed" if one.is_needed else "none" if one.default is None and not one.setting.usual else ""
    return usual or "; ".join(one.limits).removeprefix("default: ")


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
    return before + head + rows + after[f"{after}\n".index("\n\n") + 1 :]


def settings_page(page: str) -> str:
    """Returns the text of docs/settings.md with the tables as they are now."""
    page = _with_rows(page, SETTINGS, settings())
    return _with_rows(page, OF_FILE.format("a campaign's file"), keys(CampaignFile))


def network_page(page: str) -> str:
    """Returns the text of docs/network-files.md with the tables as they are now."""
    tables = {
        "`dsim`'s file": keys(DsimSettings) + keys(DsimPlace, "`[to]` ") + keys(Faults, "`[faults]` "),
        "both engines' files": keys(ListeningPlace, "`[from]` ") + keys(SendingPlace, "`[[to]]` "),
        "`fengine`'s file": keys(FServiceSettings)
        + keys(FBand, "`[[to]]` ", without=SendingPlace)
        + keys(Narrow, "`[[to]]` `narrow` "),
        "`xengine`'s file": keys(XServiceSettings),
    }
    for what, rows in tables.items():
        page = _with_rows(page, OF_FILE.format(what), rows)
    return page


def array_page(page: str) -> str:
    """Returns the text of docs/engines-arrays.md with the table as it is now."""
    of_header = "".join(f"| `{name}` | {one.help} | the header's |\n" for name, one in IN_ARRAY.items())
    return _with_rows(page, OF_FILE.format("an array's file"), keys(ArrayAntenna) + of_header)


PAGES = {
    ROOT / "docs" / "engines-arrays.md": array_page,
    ROOT / "docs" / "network-files.md": network_page,
    ROOT / "docs" / "record.md": record_page,
    ROOT / "docs" / "settings.md": settings_page,
    ROOT / "README.md": readme,
}

if __name__ == "__main__":
    for path, renewed in PAGES.items():
        path.write_text(renewed(path.read_text()))
