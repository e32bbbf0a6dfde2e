"""A package answers for problems that nobody recorded: what it says, keeps, refuses, and does without Jinja2."""

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autotune import Config, Device, UsageError
from autotune.core.schema import seal
from autotune.emit.writer import write_package

from ..conftest import EXAMPLE
from ..emit.conftest import python
from ..fake_gpu import import_package
from ..recorded import DEFAULT, H200, KERNELS, TALL, WIDE, record

SLOW = [
    Config(BLOCK_C=c, BLOCK_T=t, UNROLL=u)
    for c in (32, 64)
    for t in (2, 4, 8)
    for u in (1, 4)
    if (c, t, u) != (64, 4, 1)
]
TIMES = {DEFAULT: 30.0, WIDE: 20.0, TALL: 25.0, **{config: 40.0 + i for i, config in enumerate(SLOW)}}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def recorded_on(device: Device, results: Path) -> Path:
    """Records of short integrations, where WIDE is fast, and of long ones, where TALL is."""
    for n_chan in (1000, 65536):
        for n_time in (48, 64, 96, 128, 192, 256):
            record(results, device, TIMES, n_time=n_time, n_chan=n_chan)
        for n_time in (6144, 8192, 12288, 16384, 24576, 32768):
            record(results, device, {**TIMES, TALL: 10.0}, n_time=n_time, n_chan=n_chan)
    return results


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with records, and a package of them, that tests copy."""
    root = tmp_path_factory.mktemp("made")
    write_package([recorded_on(H200, root / "results")], root / "tuned", kernels=KERNELS)
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tuned"


@pytest.fixture
def tuned(folder: Path) -> ModuleType:
    return import_package(folder, "tuned")


def asked(tuned: ModuleType, **fields: Any) -> Any:
    return tuned.detect(**fields, device="NVIDIA H200").choice


@pytest.mark.quick
def test_problems_between_the_records_get_what_their_neighbours_had(tuned: ModuleType) -> None:
    short, long = asked(tuned, n_time=100), asked(tuned, n_time=10000)
    assert (short.tier, short.config) == ("nearest", WIDE)
    assert (long.tier, long.config) == ("nearest", TALL)
    for choice in (short, long):
        assert choice.expected_loss is not None and choice.left_out.n == 24 and choice.left_out.tier == "nearest"
        assert 0 < choice.expected_loss <= choice.bound < 0.05
        assert "the winner here of a problem 0." in choice.why
        assert "in nine of ten, from 24 held-out problems)" in str(choice)
        assert not choice.verified and "  verified  no" in str(choice)
    assert asked(tuned, n_time=64).tier == "exact" and asked(tuned, n_time=64).verified


def test_sizes_far_from_the_recorded_ones_are_predicted_too(tuned: ModuleType) -> None:
    assert asked(tuned, n_time=64, n_chan=5000).tier == "nearest"
    choice = asked(tuned, n_time=64, n_chan=4096 * 2)
    assert (choice.config, choice.bound < 0.05) == (WIDE, True)


def test_its_source_is_what_autotune_renders(tuned: ModuleType) -> None:
    choice = asked(tuned, n_time=100)
    assert tuned._package.source(choice.source_key).startswith(f"// detect[n_time=100|{choice.config}]")


def counted(monkeypatch: pytest.MonkeyPatch, package: str) -> list[str]:
    """The names of what takes long in a package, which grow by one at each call."""
    room, calls = sys.modules[f"{package}._autotune.recommend.predictor"], list[str]()
    for name in ("candidates", "_text", "_built"):
        work = getattr(room, name)
        monkeypatch.setattr(room, name, lambda *words, name=name, work=work: calls.append(name) or work(*words))
    return calls


@pytest.mark.parametrize("damage", ["[]x", "[{", "[]", '"why"', '{"UNROLL": 5}', '{"UNROLL": "); evil("}'])
def test_a_second_start_computes_nothing_unless_what_was_kept_is_damaged(
    folder: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    from autotune.core.kept import keep

    first = import_package(folder, "tuned_a")
    choice = asked(first, n_time=100)
    (kept,) = (own_cache / "predictions").glob("detect-*.prediction")
    second = import_package(folder, "tuned_b")
    calls = counted(monkeypatch, "tuned_b")
    again = asked(second, n_time=100)
    assert (str(again), again.line, again.left_out.n, calls) == (str(choice), choice.line, choice.left_out.n, [])
    assert second._package.source(again.source_key) == first._package.source(choice.source_key)
    if damage.startswith('{"'):
        content = json.loads(kept.read_bytes())
        damage = json.dumps({**content, "config": {**content["config"], **json.loads(damage)}})
    keep(kept, damage.encode(), {})
    third = import_package(folder, "tuned_c")
    calls = counted(monkeypatch, "tuned_c")
    assert str(asked(third, n_time=100)) == str(choice) and calls == ["candidates", "_text", "_built"]


@pytest.mark.parametrize("change", ["compiler", "measured", "size"])
def test_what_follows_from_something_else_is_found_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    asked(import_package(folder, "tuned_g"), n_time=100)
    if change == "measured":
        (folder / "measured.json").write_text((folder / "measured.json").read_text() + "\n")
    again = import_package(folder, "tuned_h")
    if change == "compiler":
        monkeypatch.setattr(sys.modules["tuned_h._autotune.runtime.nvrtc"], "available", lambda: "it is another one")
    calls = counted(monkeypatch, "tuned_h")
    asked(again, n_time=101 if change == "size" else 100)
    assert calls == ["candidates", "_text", "_built"]


def test_without_a_writable_cache_it_answers(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "file"))
    assert asked(import_package(folder, "tuned_d"), n_time=100).config == WIDE


def test_a_package_of_an_older_version_has_no_trees_and_answers_without(folder: Path) -> None:
    """Its measured.json has the scales of a model that is gone."""
    content = json.loads((folder / "measured.json").read_text())
    content.pop("sha256")
    content["kernels"]["detect"] = {"method": "model", "scales": {}, "values": {}, "problems": []}
    (folder / "measured.json").write_text(json.dumps(seal(content)))
    tuned = import_package(folder, "tuned_old")
    choice = asked(tuned, n_time=64, n_chan=5000)
    assert (choice.tier, choice.config) == ("nearest", WIDE) and choice.loss == "unknown"
    assert asked(tuned, n_time=100).tier == "default"


def test_without_jinja_one_line_says_what_to_install(folder: Path) -> None:
    code = "import tuned\ntry: tuned.detect(n_time=100, device='NVIDIA H200')\nexcept tuned.UsageError as e: print(e)"
    told = python(code, folder.parent)
    assert 'Jinja2, which is missing: pip install "jinja2>=3.1"' in told and "autotune sweep" in told
    assert 'render = ["jinja2>=' in (folder / "pyproject.toml").read_text()
    ask = "import tuned; print(tuned.detect(n_time=64, device='NVIDIA H200').choice.tier)"
    assert python(ask, folder.parent).strip() == "exact", "what is recorded needs none"


def test_a_list_of_problems_is_rendered_ahead(tmp_path: Path, folder: Path) -> None:
    listed = tmp_path / "problems.toml"
    listed.write_text(f'kernel = "{EXAMPLE}"\n[grid]\nn_time = [100, 10000]\n[[problems]]\nn_time = 300\n')
    write_package([tmp_path / "results"], folder, kernels=KERNELS, problems=[listed])
    ask = "import tuned\nfor n in (100, 300, 10000): print(tuned.detect(n_time=n, device='NVIDIA H200').choice.config)"
    assert python(ask, tmp_path).splitlines() == [str(WIDE), str(WIDE), str(TALL)]
    listed.write_text('kernel = "ddc"\n[[problems]]\ntaps = 7\n')
    with pytest.raises(UsageError, match=r"problems.toml: ddc is not emitted; emitted are detect"):
        write_package([tmp_path / "results"], folder, kernels=KERNELS, problems=[listed])
    listed.write_text(f'kernel = "{EXAMPLE}"\n[[problems]]\nn_time = "many"\n')
    with pytest.raises(UsageError, match=r"problems\.toml: detect: n_time=many must be an integer"):
        write_package([tmp_path / "results"], folder, kernels=KERNELS, problems=[listed])


def test_another_architecture_gets_the_kernels_own_default(tuned: ModuleType) -> None:
    choice = tuned.detect(n_time=100, device="NVIDIA A100-SXM4-80GB").choice
    assert (choice.tier, choice.config) == ("default", DEFAULT)
    assert "no problem of detect was recorded on a GPU of sm_80" in choice.why


def test_a_device_of_the_architecture_is_predicted_for(tuned: ModuleType) -> None:
    choice = tuned.detect(n_time=10000, device="NVIDIA GH200").choice
    assert choice.config == TALL and choice.expected_loss is None and choice.bound is None
    assert choice.loss.startswith("unknown on this GPU; on NVIDIA H200: ")


# ---------------------------------------------------------------------- what gives way
def refusing(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch, reasons: Mapping[Config, str]) -> None:
    predictor = tuned._package.predicting.__class__
    room = predictor.candidates.__globals__

    def built(kernel: Any, launch: Any, source: str, device: Any) -> tuple[str, bool]:
        for config, reason in reasons.items():
            if f"|{config}]" in source:
                raise room["UsageError"](reason)
        return "compiled", False

    monkeypatch.setitem(room, "_built", built)


def test_what_does_not_compile_gives_way_to_the_next(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(tuned, monkeypatch, {WIDE: "it spills 8 bytes of registers"})
    choice = asked(tuned, n_time=100)
    assert choice.tier in ("predicted", "default") and choice.config != WIDE
    assert re.search(rf"{WIDE} gives way: it spills 8 bytes of registers", choice.why)


def test_where_none_compiles_the_error_says_it_of_each(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = tuned._package.predicting.__class__
    room = predictor.candidates.__globals__

    def built(*_: object) -> str:
        raise room["UsageError"]("no luck")

    monkeypatch.setitem(room, "_built", built)
    with pytest.raises(tuned.UsageError, match="gives way: no luck") as error:
        asked(tuned, n_time=100)
    assert str(error.value).count("gives way") >= 3 and "autotune sweep" in str(error.value)


@pytest.mark.parametrize(
    ("registers", "spilled", "n_shared", "told"),
    [
        (40, 0, 0, None),
        (40, 464, 0, None),
        (255, 608, 0, "spills 608 bytes"),
        (40, 0, 10**6, "needs 1000000 bytes of shared memory"),
    ],
)
def test_spills_and_shared_memory_are_read_from_the_compiler(
    registers: int, spilled: int, n_shared: int, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autotune.core.definition import Launch
    from autotune.recommend import predictor
    from autotune.runtime.nvrtc import Cubin
    from autotune.source.registry import load_kernel

    cubin = Cubin(b"", "sm_90a", "key", registers, spilled, n_shared)
    monkeypatch.setattr(predictor.gpu, "cubin_of", lambda *_: cubin)
    monkeypatch.setattr(predictor.nvrtc, "available", lambda: None)
    kernel, launch = load_kernel(EXAMPLE), Launch((1, 1, 1), (32, 1, 1))
    if told is None:
        spills = f"spills {spilled} bytes" if spilled else "no spills"
        assert predictor._built(kernel, launch, "", H200) == (f"compiled for sm_90: 40 registers, {spills}", False)
    elif spilled:
        assert predictor._built(kernel, launch, "", H200) == ("spills 608 bytes of registers", True)
    else:
        with pytest.raises(UsageError, match=told):
            predictor._built(kernel, launch, "", H200)


def test_where_all_spill_the_first_is_taken_and_told(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tuned._package.predicting.__class__.candidates.__globals__
    monkeypatch.setitem(room, "_built", lambda *_: ("spills 8 bytes of registers", True))
    choice = asked(tuned, n_time=100)
    assert (choice.tier, choice.config) == ("nearest", WIDE)
    assert "spills 8 bytes of registers; so do all others" in choice.why
    assert tuned._package.source(choice.source_key).startswith("// detect[")


# ---------------------------------------------------------------------- what is damaged
def test_a_damaged_file_is_told_where_it_is_needed_alone(folder: Path) -> None:
    text = (folder / "measured.json").read_text()
    (folder / "measured.json").write_text(text.replace('"seconds":', '"seconds":1', 1))
    tuned = import_package(folder, "tuned_d")
    assert asked(tuned, n_time=64).tier == "exact"
    with pytest.raises(tuned.UsageError, match=r"measured\.json is damaged"):
        asked(tuned, n_time=100)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("by_rule", "eval"),
        ("by_rule", [0.1, [[99, 0.0, 1, 2], 0.0, 0.0]]),
        ("alone", [0.1, [[0, 0.0, 0, 0]]]),
        ("alone", [0.1, [[0, 0.0, 1, 7], 0.0]]),
        ("alone", [float("1e999"), [0.0]]),
        ("columns", {"fields": []}),
        ("losses", [{"where": "sm_90"}]),
        ("problems", [{"device": "NVIDIA H200"}]),
    ],
)
def test_sealed_content_that_is_not_experience_is_refused(folder: Path, where: str, value: object) -> None:
    content = json.loads((folder / "measured.json").read_text())
    content.pop("sha256")
    content["kernels"]["detect"][where] = value
    (folder / "measured.json").write_text(json.dumps(seal(content)))
    tuned = import_package(folder, "tuned_e")
    with pytest.raises(tuned.UsageError, match=r"measured\.json is damaged"):
        asked(tuned, n_time=100)


def test_values_outside_the_space_never_reach_the_renderer(folder: Path) -> None:
    content = json.loads((folder / "measured.json").read_text())
    content.pop("sha256")
    for problem in content["kernels"]["detect"]["problems"]:
        problem["config"]["UNROLL"] = "1); evil("
    (folder / "measured.json").write_text(json.dumps(seal(content)))
    tuned = import_package(folder, "tuned_f")
    choice = asked(tuned, n_time=100)
    assert choice.config.UNROLL in (1, 4) and "evil" not in tuned._package.source(choice.source_key)
