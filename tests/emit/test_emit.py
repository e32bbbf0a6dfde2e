"""From recorded sweeps to a package: what is written and where, what definitions bring, and that it stands alone."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune import UsageError
from autotune.emit.vendor import BROUGHT, ROOMS, definition_sources
from autotune.emit.writer import write_package
from autotune.runtime.wisdom import Wisdom
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..fake_gpu import import_package
from ..recorded import A100, DEFAULT, H200, KERNELS, WIDE, record
from .conftest import MEDIANS, python


# ----------------------------------------------------------------------what is emitted
def test_winner_with_its_evidence(package: Path) -> None:
    wisdom = Wisdom.load(package / "wisdom.json")
    entry = next(e for e in wisdom.entries if e.device.name == "NVIDIA H200" and e.runtime == {"n_chan": 4096})
    assert (entry.config, entry.baked, entry.device) == (WIDE, {"n_time": 100}, H200)
    evidence = entry.evidence
    assert evidence.median_s == pytest.approx(20e-6)
    assert evidence.speed_up == pytest.approx(1.5)
    assert (evidence.registers, evidence.max_error, evidence.ties) == (32, 1.5e-7, 1)
    assert evidence.verified_on == ("n_chan=1", "n_chan=129")
    assert (evidence.commit, evidence.date[:10]) == ("0123456789ab", "2026-11-01")
    source = (package / "sources" / f"{entry.source_key}.cu").read_text()
    assert "constexpr int BLOCK_C = 128;" in source and "{{" not in source


def test_default_is_there_for_every_set_of_baked_fields(package: Path) -> None:
    fallbacks = Wisdom.load(package / "wisdom.json").fallbacks
    assert [(f.baked, f.config, f.inputs) for f in fallbacks] == [
        ({"n_time": 100}, DEFAULT, ("voltage",)),
        ({"n_time": 7}, DEFAULT, ("voltage",)),
    ]
    assert all((package / "sources" / f"{f.source_key}.cu").is_file() for f in fallbacks)


def test_default_may_win(package: Path) -> None:
    entry = next(e for e in Wisdom.load(package / "wisdom.json").entries if e.device == A100)
    assert (entry.config, entry.evidence.speed_up) == (DEFAULT, 1.0)


def test_definitions_that_are_not_installed_are_named_by_their_paths(package: Path) -> None:
    assert Wisdom.load(package / "wisdom.json").definitions == {"detect": EXAMPLE}


def test_wisdom_survives_a_round_trip(package: Path) -> None:
    text = (package / "wisdom.json").read_text()
    assert Wisdom.load(package / "wisdom.json").as_json() == text


def test_emitting_again_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    again = write_package(
        [tmp_path / "results", tmp_path / "results"], tmp_path / "elsewhere" / "tuned", kernels=KERNELS
    )
    files = sorted(p.relative_to(package) for p in package.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    for name in files:
        assert (package / name).read_bytes() == (again / name).read_bytes()


def test_a_package_lists_its_kernels_only(package: Path) -> None:
    assert dir(import_package(package, "tuned_listed")) == ["detect"]


def test_rooms_are_copied_unchanged(package: Path) -> None:
    for room in ROOMS:
        own, copied = Path(autotune.__file__).parent / room, package / BROUGHT / room
        names = {path.name for path in own.iterdir() if path.suffix == ".py"}
        assert {path.name for path in copied.iterdir()} - {"__pycache__", "headers"} == names
        assert all((copied / name).read_text() == (own / name).read_text() for name in names)


def test_a_package_compiles_what_includes_headers_of_c(package: Path) -> None:
    source = '#include <stdint.h>\nextern "C" __global__ void k(uint32_t* y) { y[0] = UINT32_MAX; }'
    code = f"from tuned.{BROUGHT}.runtime import nvrtc\nnvrtc.compile_cubin({source!r}, 'k', 'sm_90')\n"
    assert python(f"{code}print(nvrtc.HEADERS)", package.parent).strip() == str(
        package / BROUGHT / "runtime" / "headers"
    )


# ----------------------------------------------------------------------where it is written
def test_folder_must_be_a_module_name(tmp_path: Path) -> None:
    record(tmp_path, H200, MEDIANS)
    with pytest.raises(UsageError, match="'tuned-v2' cannot be imported"):
        write_package([tmp_path], tmp_path / "tuned-v2", kernels=KERNELS)


def test_what_was_not_emitted_is_not_overwritten(tmp_path: Path) -> None:
    record(tmp_path / "results", H200, MEDIANS)
    precious = tmp_path / "tuned" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years of work")
    with pytest.raises(UsageError, match="not an emitted package"):
        write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
    assert precious.read_text() == "years of work"


def test_an_emitted_package_is_replaced_as_a_whole(package: Path, tmp_path: Path) -> None:
    (package / "sources" / "stale.cu").write_text("old")
    write_package([tmp_path / "results"], package, kernels=KERNELS)
    assert not (package / "sources" / "stale.cu").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == [], "no temporary folder is left"


# ----------------------------------------------------------------------definitions
@pytest.mark.parametrize(
    ("statement", "culprit"),
    [
        ("import scipy.signal", "import scipy.signal"),
        ("import autotune", "import autotune"),
        ("from autotune import sweep", "from autotune import sweep"),
        ("from autotune.records.folder import load", "from autotune.records.folder import"),
        ("from .helpers import window", "from .helpers import"),
        ("def late():\n    import cupy", "import cupy"),
    ],
)
def test_definition_may_bring_only_what_a_package_has(tmp_path: Path, statement: str, culprit: str) -> None:
    text = Path(EXAMPLE).read_text()
    path = tmp_path / "importing.py"
    path.write_text(text)
    kernel = load_kernel(str(path))
    path.write_text(text + "\n\n" + statement + "\n")
    line = len(text.splitlines()) + 3 + statement.count("\n")
    with pytest.raises(UsageError) as raised:
        definition_sources(kernel)
    assert f"importing.py:{line}: `{culprit}" in str(raised.value)
    assert "Tolerance" in str(raised.value), "says what may be imported"


def test_definition_changes_in_its_imports_only() -> None:
    kernel = load_kernel(EXAMPLE)
    changed = [
        (before, after)
        for before, after in zip(
            Path(EXAMPLE).read_text().splitlines(), definition_sources(kernel)["detect.py"].splitlines(), strict=True
        )
        if before != after
    ]
    assert len(changed) == 1 and changed[0][0].startswith("from autotune import ")
    assert changed[0][1] == changed[0][0].replace("from autotune import ", "from .._autotune.core import ")


def test_a_definition_brings_its_parts(tmp_path: Path) -> None:
    """What they import, too; and each is held to what a package has."""
    text = Path(EXAMPLE).read_text()
    folder = tmp_path / "detect"
    folder.mkdir()
    (folder / "detect.py").write_text(text.replace("\nimport numpy", "\nfrom .one import ONE\nimport numpy", 1))
    (folder / "one.py").write_text("from .two import ONE\n")
    (folder / "two.py").write_text("from autotune import Space\n\nONE = Space()\n")
    (folder / "plot.py").write_text("import matplotlib\n")  # which is no part
    kernel = load_kernel(str(folder))
    assert [path.name for path in kernel.source_paths] == ["detect.py", "one.py", "two.py"]
    sources = definition_sources(kernel)
    assert sorted(sources) == ["detect/__init__.py", "detect/detect.py", "detect/one.py", "detect/two.py"]
    assert sources["detect/two.py"].startswith("from ..._autotune.core import Space")
    assert "ONE" not in sources["detect/__init__.py"]
    (folder / "__init__.py").write_text("from .one import ONE\n")
    assert definition_sources(kernel)["detect/__init__.py"] == "from .one import ONE\n"
    (folder / "two.py").write_text("import cupy\n")
    with pytest.raises(UsageError, match=r"two\.py:1: `import cupy` cannot be emitted"):
        definition_sources(kernel)


def test_a_package_finds_a_definition_of_several_files(tmp_path: Path) -> None:
    folder = tmp_path / "detect"
    folder.mkdir()
    text = Path(EXAMPLE).read_text()
    (folder / "detect.py").write_text(text.replace("\nimport numpy", "\nfrom .one import ONE\nimport numpy", 1))
    (folder / "one.py").write_text("ONE = 1\n")
    (folder / "detect.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    record(tmp_path / "results", H200, MEDIANS, definition=str(folder / "detect.py"))
    write_package([tmp_path / "results"], tmp_path / "tuned", kernels=[folder])
    code = "import tuned; print(tuned._package.kernel('detect').name, tuned.kernels.detect.one.ONE)"
    assert python(code, tmp_path).strip() == "detect 1"


@pytest.mark.parametrize("name", ["correlate", "ddc"])
def test_own_kernels_can_be_emitted(name: str) -> None:
    assert "from ..._autotune.core" in definition_sources(load_kernel(name))[f"{name}/{name}.py"]


# ---------------------------------------------------------------------- the package on its own
ASK = """
import tuned
print(tuned.detect(n_time=100, device="NVIDIA H200", n_chan=4096).choice.config)
choice = tuned.detect(n_time=100, device="sm_75").choice
print(choice.tier, choice.config)
import cupy
"""


@pytest.mark.quick
def test_imports_and_looks_up_with_numpy_alone(package: Path) -> None:
    """No autotune, no CuPy, no GPU."""
    code = "sys.modules['cupy'] = sys.modules['cupy_backends'] = None\n" + ASK.replace("import cupy\n", "")
    assert python(code, package.parent).splitlines() == [str(WIDE), f"default {DEFAULT}"]


@pytest.mark.quick
def test_result_is_the_definition_too(package: Path) -> None:
    code = """
import numpy as np, tuned
kernel = tuned._package.kernel("detect")
power = kernel.reference(kernel.problem({"n_time": 3, "n_chan": 2}), voltage=np.full((3, 2), 2j))["power"]
print(power.tolist())
"""
    assert python(code, package.parent).strip() == "[12.0, 12.0]"


def test_no_gpu_is_told_with_what_to_do(package: Path) -> None:
    code = """
sys.modules['cupy'] = None
import tuned
try:
    tuned.detect(n_time=100)
except tuned.UsageError as error:
    print(error)
"""
    said = python(code, package.parent)
    assert "CuPy is missing" in said
    assert 'by device= or --device (recorded: "NVIDIA A100", "NVIDIA H200", "host")' in said


def test_fields_that_differ_follow_from_those_that_are_given(package: Path, tmp_path: Path) -> None:
    code = """
import inspect, tuned
print([p.default is inspect.Parameter.empty for p in inspect.signature(tuned.detect).parameters.values()])
"""
    assert python(code, package.parent).strip() == "[False, False, False, False, False]"
    record(tmp_path / "one", H200, MEDIANS)
    write_package([tmp_path / "one"], tmp_path / "b" / "tuned", kernels=KERNELS)
    assert python("import tuned; print(tuned.detect(device='NVIDIA H200').problem)", tmp_path / "b").startswith(
        "Problem(n_time=100"
    )


def test_pip_installs_it_beside_numpy_alone(package: Path, tmp_path: Path) -> None:
    """A wheel from the folder, in an environment that has NumPy and nothing else."""
    site = tmp_path / "site"
    site.mkdir()
    numpy = Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (numpy.parent / name).exists():
            (site / name).symlink_to(numpy.parent / name)
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(site)]
    if int(version("setuptools").split(".")[0]) >= 71:  # makes wheels by itself: no index is needed
        install.append("--no-build-isolation")
    subprocess.run([sys.executable, *install, str(package)], check=True, capture_output=True, text=True)
    installed = site / "tuned"
    assert sorted(p.name for p in installed.iterdir() if p.name != "__pycache__") == sorted(
        ["__init__.py", "_autotune", "kernels", "measured.json", "py.typed", "sources", "wisdom.json"]
    )
    alone = ["-S", "-P", "-E"]  # no site-packages, no current folder, no environment
    code = f"sys.path.insert(0, {str(site)!r})\n" + ASK.replace("import cupy\n", "print(tuned.__file__)")
    lines = python(code, tmp_path / "site", *alone).splitlines()
    assert lines == [str(WIDE), f"default {DEFAULT}", str(installed / "__init__.py")]
