"""A format of files is one module: what the tree has is listed once, and a package that is installed adds one."""

import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.files import formats
from autotune.engines.files.formats.interface import SAMPLES, VISIBILITIES, VOLTAGES, either
from autotune.engines.files.formats.raw import RawFile
from autotune.engines.files.packing import pack_samples
from autotune.engines.jobs import Bands, Running, correlate
from autotune.engines.streams.samples import SampleInfo

from ...test_installed import autotune, install
from .common import refused

ROOT = Path(__file__).parents[3]
ENTRY_POINTS = "[autotune.formats]\nnpz = toybox.npz\n"
WORDS = ["--channels", "16", "--spectra-per-heap", "64", "--accumulate", "2", "--device", "host"]


def example() -> str:
    """The module that CONTRIBUTING.md shows."""
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding a format of files\n")
    code = re.search(r'^    """Visibilities.*?^    \[project', section, re.MULTILINE | re.DOTALL)
    assert code is not None
    return textwrap.dedent(code[0].rpartition("\n")[0])


def night(folder: Path) -> list[str]:
    """Recordings of two antennas, one of which is much louder."""
    for antenna in range(2):
        info = SampleInfo(8, 2, 1e6, 4096, 1 << 15, antenna=f"m{antenna}")
        file = RawFile(folder / f"m{antenna}.toml", info)
        samples = np.random.default_rng(antenna).normal(0, 20, (2, 1 << 15))
        file.write(pack_samples(np.rint(samples).astype(np.int16), 8))
        file.close()
    return [str(folder / f"m{antenna}.toml") for antenna in range(2)]


def test_a_format_is_added_from_outside(tmp_path: Path) -> None:
    assert len(example().splitlines()) <= 30
    site, files = install(tmp_path / "site", {"npz": example()}, ENTRY_POINTS), night(tmp_path)
    out = tmp_path / "x.npz"
    done = autotune("correlate", *files, *WORDS, "--out", str(out), site=site)
    assert done.returncode == 0 and done.stdout.startswith(f"{out}: "), done.stderr
    kept = correlate(files, Bands(16, spectra_per_heap=64), accumulate=2, running=Running(device="host"))
    with np.load(out) as found:
        assert found["timestamps"].tolist() == kept.timestamps.tolist() and len(kept.timestamps) > 3
        assert np.array_equal(found["visibilities"], kept.visibilities) and kept.visibilities.any()
        assert np.array_equal(found["weights"], kept.weights)
    again = autotune("correlate", *files, *WORDS, "--out", str(out), site=site)
    assert again.returncode == 2 and "x.npz: it exists" in again.stderr
    voltages = autotune("channelise", files[0], "--channels", "16", "--out", str(tmp_path / "v.npz"), site=site)
    assert voltages.returncode == 2
    assert (
        "v.npz: its name must end in .h5, .hdf5, .raw or .vdif for voltages; installed packages add .npz"
        in voltages.stderr
    )


def test_a_reader_is_asked_where_the_tree_has_other_data_of_its_suffix(tmp_path: Path) -> None:
    reader = """
from autotune import UsageError
suffixes, holds, help = (".h5",), "samples", "a recording of the toybox"
def read(path, overrides, tell):
    raise UsageError(f"{path.name}: the toybox was asked")
"""
    site = install(tmp_path / "site", {"h5": reader}, "[autotune.formats]\nh5 = toybox.h5\n")
    (tmp_path / "x.h5").touch()
    asked = autotune(
        "channelise", str(tmp_path / "x.h5"), "--channels", "16", "--out", str(tmp_path / "v.h5"), site=site
    )
    assert (asked.returncode, asked.stderr) == (2, "autotune: x.h5: the toybox was asked\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module", "'npz' of autotune.formats does not load: toybox.npz of toybox 1.0: ModuleNotFound"),
        (
            "suffixes = ('.npz',)",
            "'npz' of autotune.formats cannot be used: toybox.npz of toybox 1.0 lacks help, holds",
        ),
        (
            "suffixes, holds, help = ('.np',), 'voltages', ''",
            "has the suffixes ('.np',): its entry point must be called",
        ),
        ("suffixes, holds, help = ('.npz',), 'pictures', ''", "holds='pictures', must be samples, voltages or"),
        ("suffixes, holds, help = ('.npz',), 'voltages', ''", "'npz' of autotune.formats lacks both read and write"),
    ],
)
def test_a_format_that_is_broken_is_told(tmp_path: Path, text: str, says: str) -> None:
    site, files = install(tmp_path / "site", {"npz": text}, ENTRY_POINTS), night(tmp_path)
    done = autotune("correlate", *files, *WORDS, "--out", str(tmp_path / "x.npz"), site=site)
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "x.npz").exists()
    done = autotune("correlate", *files, *WORDS, "--out", str(tmp_path / "x.h5"), site=site)
    assert done.returncode == 0, "what is not asked for is not loaded"


def test_a_module_in_the_folder_is_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {each.__name__ for each in formats.own()}
    (tmp_path / "npz.py").write_text(example())
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    formats.own.cache_clear()
    try:
        assert {each.__name__ for each in formats.own()} - before == {f"{formats.__name__}.npz"}
        assert ".npz" in formats.suffixes(VISIBILITIES, "write")
        assert formats.for_new(tmp_path / "x.npz", VISIBILITIES).help == "arrays of NumPy"
        with refused("x.fits: its name must end in .h5, .hdf5, .ms, .npz or .uvh5 for visibilities"):
            formats.for_new(Path("x.fits"), VISIBILITIES)
    finally:
        monkeypatch.undo()
        formats.own.cache_clear()
        sys.modules.pop(f"{formats.__name__}.npz", None)


def test_a_recording_of_an_added_format_is_read(tmp_path: Path) -> None:
    """Its content is none that the tree knows, its name is, and the folder that it lies in has it, too."""
    module = """
        from autotune.engines.streams.in_memory import ArraySource
        from autotune.engines.streams.samples import SampleInfo
        import numpy as np

        suffixes, holds, help = (".npz",), "samples", "arrays of NumPy"

        def read(path, given, tell):
            rows = np.load(path)["samples"]
            return ArraySource(rows.view(np.uint8), given.over(SampleInfo(8, 2, 1e6, 4096)))
    """
    site = install(tmp_path / "site", {"npz": textwrap.dedent(module)}, ENTRY_POINTS)
    (tmp_path / "night").mkdir()
    samples = np.rint(np.random.default_rng(1).normal(0, 20, (2, 1 << 15))).astype(np.int8)
    np.savez(tmp_path / "night" / "m0.npz", samples=samples)
    np.savez(tmp_path / "night" / "m1.npz", samples=samples)
    out = tmp_path / "x.h5"
    done = autotune("correlate", str(tmp_path / "night"), *WORDS, "--out", str(out), site=site)
    assert done.returncode == 0 and "3 baselines" in done.stdout, done.stderr
    without = autotune("correlate", str(tmp_path / "night"), *WORDS, "--out", str(tmp_path / "y.h5"))
    assert without.returncode == 2 and "there is no recording in" in without.stderr


def test_the_page_lists_the_formats() -> None:
    rows = re.findall(
        r"^\| (.+?) \| (\w+) \| (.+?) \| (.+?) \| `(\w+)` \|$",
        (ROOT / "docs/engines-files.md").read_text(),
        re.MULTILINE,
    )
    expected = []
    for each in formats.own():
        names = [f"x{suffix}" for suffix in sorted(each.suffixes)]
        by_content = (
            ["by content"] if each.holds == SAMPLES and each.suffixes[:1] not in ((".toml",), (".sigmf-meta",)) else []
        )
        does = ", ".join(word for word in ("read", "write") if hasattr(each, word))
        expected.append((each.help, each.holds, ", ".join(names + by_content), does, each.__name__.rpartition(".")[2]))
    assert rows == expected and len(rows) == 12


def test_help_names_the_formats() -> None:
    told = {command: " ".join(autotune(command, "-h").stdout.split()) for command in ("channelise", "correlate")}
    assert f"A recording: {either(formats.names(SAMPLES))}." in told["channelise"]
    for command, holds in (("channelise", VOLTAGES), ("correlate", VISIBILITIES)):
        assert either([f"x{suffix}" for suffix in formats.suffixes(holds, "write")]) in told[command]


TOY = """
from autotune.engines.files.checks import integer
from autotune.engines.files.formats import npy
from autotune.engines.files.reading import HeaderField, LackingError

suffixes, holds, help = (".toy",), "samples", "toy"
header_fields = {"levels": HeaderField("toy: levels of a sample", integer(2, 16), int)}

def read(path, overrides, tell):
    if overrides.levels is None:
        raise LackingError(path, "it lacks its levels: give levels", "levels", 4)
    tell(f"{overrides.levels} levels")
    plain = path.with_name("plain.npy")
    plain.write_bytes(path.read_bytes()[4:])
    return npy.read(plain, overrides, tell)
"""


def test_a_format_from_outside_declares_its_own_header_fields(tmp_path: Path) -> None:
    site, path = install(tmp_path / "site", {"toy": TOY}, "[autotune.formats]\ntoy = toybox.toy\n"), tmp_path / "x.toy"
    with path.open("wb") as file:
        file.write(b"TOY0")
        np.save(file, np.ones((2, 1 << 14), np.int8))
    words = ["--channels", "16", "--spectra-per-heap", "16", "--device", "host", "--out", str(tmp_path / "x.h5")]
    (tmp_path / "array.toml").write_text(
        'sample_rate_hz = 1e6\nlevels = 4\n[[antenna]]\nname = "a"\nfiles = ["x.toy"]\n'
    )

    def made(*more: str) -> str:
        done = autotune("channelise", str(path), *words, *more, site=site)
        return str(done.stderr) if done.returncode else f"{done.stderr} made"

    assert "levels (toy: levels of a sample)" in " ".join(autotune("channelise", "-h", site=site).stdout.split())
    assert "it lacks its levels: give levels" in made("--header", "sample_rate_hz=1e6")
    assert "levels is 1, must be an integer, 2 to 16" in made("--header", "levels=1")
    assert "--header levels=four: must be NAME=VALUE" in made("--header", "levels=four")
    assert "unknown header field 'level' (did you mean levels?); known fields: " in made("--header", "level=4")
    done = made("--header", "levels=4", "--header", "sample_rate_hz=1e6")
    assert "4 levels" in done and done.endswith("made")
    by_array = autotune(
        *("correlate", str(tmp_path / "array.toml"), *words[:-1], str(tmp_path / "v.h5"), "--accumulate", "1"),
        site=site,
    )
    assert by_array.returncode == 0 and "4 levels" in by_array.stderr
