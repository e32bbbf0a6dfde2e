"""Choices of configs: the package's, else the results', else the default; what is told of them is the lookup's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autotune import Config, Device, Space, UsageError, since
from autotune.core.definition import problem_name
from autotune.emit.writer import write_package
from autotune.engines.kernels import choice as choices
from autotune.engines.kernels import sources
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.recommend import predictor
from autotune.recommend.duration import ELSEWHERE, EXPECTED, HERE
from autotune.runtime.bounds import LOSS_AFTER
from autotune.source.registry import load_kernel
from autotune.sweep import settings

from ...recorded import A100, H100, H200, record

KERNEL = load_kernel("accumulate")
MISSED = LOSS_AFTER[min(LOSS_AFTER)][0]  # by sweeps of so few trials


class Uncompiled(HostBackend):
    """Gives launchers that only know what they are of."""

    def __init__(self, device: Device | None = None) -> None:
        super().__init__()
        self.device = device or self.device

    def launcher(self, kernel: Any, problem: Any, config: Config, source: str | None = None) -> Any:
        return SimpleNamespace(config=config, source=source)


BACKEND = Uncompiled()
FIELDS = {"n_accumulators": 2, "n_channels": 3, "n_receivers": 4}
PROBLEM = KERNEL.problem(FIELDS)
DEFAULT = KERNEL.default_config(PROBLEM, BACKEND.device)
FAST, SLOW = Config({**DEFAULT, "WGS": 256}), Config({**DEFAULT, "WGS": 512})


def recorded(results: Path, best: Config, device: Device = BACKEND.device, **fields: int) -> Path:
    """A sweep in which ``best`` took 10 us, the default 30 us, and other configs 20 us."""
    medians = {DEFAULT: 30.0, FAST: 20.0, SLOW: 20.0} | {best: 10.0}
    asked = {**FIELDS, **fields}
    record(results, device, medians, problem=asked, default=DEFAULT, definition="accumulate")
    return results


def asked(
    told: list[str], fields: dict[str, Any] = FIELDS, backend: Uncompiled = BACKEND, **given: Any
) -> tuple[Config, str]:
    """The config of a launcher, and what was told last."""
    launcher, _ = Kernels(backend, told.append, **given).launcher("accumulate", **fields)
    return launcher.config, told[-1]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package([recorded(tmp_path / "of-package", FAST)], tmp_path / "tuned_engine")


@pytest.mark.quick
def test_nothing_given_is_the_default() -> None:
    assert asked([]) == (DEFAULT, "accumulate: the default config; expected slowdown: unknown")


def test_package_before_results_before_default(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = recorded(tmp_path / "results", SLOW)
    where = f"from package {package} (exact: tuned on this device at "
    for given in ({"package": package}, {"package": package, "results": results}):
        config, line = asked([], **given)
        assert config == FAST and line.startswith(f"accumulate: the default config but for WGS=256, {where}")
        assert line.endswith("; expected slowdown: unknown, since only 3 configs were tried")
    config, line = asked([], results=results)
    assert config == SLOW and f"WGS=512, from records in {results} (exact: " in line
    _, line = asked([], {**FIELDS, "n_accumulators": 4}, package=package, results=results)
    assert line == (
        f"accumulate: the default config, from package {package} (default: where this kernel starts, not compiled for "
        "host); expected slowdown: unknown"
    )
    monkeypatch.syspath_prepend(package.parent)
    assert asked([], package=package.name)[0] == FAST, "by its name"


def test_results_that_are_exact_go_before_a_package_that_is_near(package: Path, tmp_path: Path) -> None:
    results = recorded(tmp_path / "results", SLOW, n_channels=50)
    assert asked([], {**FIELDS, "n_channels": 50}, package=package, results=results)[0] == SLOW
    assert asked([], {**FIELDS, "n_channels": 4}, package=package, results=results)[0] == FAST, "both are near"


def test_the_loss_told_is_the_lookups(tmp_path: Path) -> None:
    results = recorded(tmp_path / "results", FAST)
    recorded(results, SLOW, n_channels=50)
    loses = f"{100 * (2 * (1 + MISSED) - 1):.1f} %"
    text = f"{loses} (median; at most {loses} in nine of ten, from 2 held-out problems)"
    package = write_package([results], tmp_path / "tuned_engine")
    for given in ({"results": results}, {"package": package}):
        config, line = asked([], {**FIELDS, "n_channels": 4}, **given)
        assert config == FAST and "(nearest: " in line and line.endswith(f"; expected slowdown: {text}")


def test_records_of_another_device_are_not_for_this_one(tmp_path: Path) -> None:
    config, line = asked([], results=recorded(tmp_path / "results", FAST, H200))
    why = "nothing of accumulate is recorded on host, nor on another device of host"
    assert config == DEFAULT and f"{why}); expected slowdown: unknown" in line


# ---------------------------------------------------------------------- what nobody recorded
MORE = {**FIELDS, "n_accumulators": 4}


def known_on(device: Device, folder: Path) -> list[dict[str, Path]]:
    """Records of that device, and a package of them."""
    results = recorded(folder / "results", FAST, device)
    return [{"results": results}, {"package": write_package([results], folder / "tuned")}]


@pytest.mark.parametrize("device", [H200, H100], ids=["of the device", "of another one"])
def test_one_record_proves_nothing_of_other_problems_two_do(tmp_path: Path, device: Device) -> None:
    """With one, the kernel's own default runs; with two that agree, their winner does."""
    for known in known_on(device, tmp_path):
        config, line = asked([], MORE, Uncompiled(H200), **known)
        assert config == KERNEL.default_config(KERNEL.problem(MORE), H200)
        assert "(default: where this kernel starts, compiled for sm_90: " in line and line.endswith("slowdown: unknown")
    assert asked([], MORE, Uncompiled(A100), results=tmp_path / "results")[1].endswith("expected slowdown: unknown")
    why = "nothing of accumulate is recorded on NVIDIA A100, nor on another device of sm_80"
    assert why in asked([], FIELDS, Uncompiled(A100), results=tmp_path / "results")[1]


def test_the_loss_of_what_is_learnt_is_told_alike(tmp_path: Path) -> None:
    results = recorded(tmp_path / "results", FAST, H200)
    recorded(results, FAST, H200, n_channels=50)
    package = write_package([results], tmp_path / "tuned")
    found = [asked([], MORE, Uncompiled(H200), **known) for known in ({"results": results}, {"package": package})]
    assert found[0][0] == found[1][0] == FAST
    lines = [line.partition("(nearest: ")[2] for _, line in found]
    told = f"slowdown: {100 * MISSED:.1f} % (median; at most 30.0 % in nine of ten, from 2 held-out problems)"
    assert lines[0] == lines[1] and lines[0].endswith(told)


def test_a_prediction_that_does_not_serve_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = predictor._built

    def spills(kernel: Any, launch: Any, source: str, device: Device) -> tuple[str, bool]:
        if f"WGS = {FAST.WGS}" in source:
            raise UsageError("accumulate spills 8 bytes of registers")
        return built(kernel, launch, source, device)

    monkeypatch.setattr(predictor, "_built", spills)
    results = recorded(recorded(tmp_path / "results", FAST, H200), FAST, H200, n_channels=50)
    config, line = asked([], MORE, Uncompiled(H200), results=results)
    assert config.WGS != FAST.WGS and "gives way: accumulate spills 8 bytes" in line


def test_tiers_go_before_each_other_as_the_lookup_has_them(tmp_path: Path) -> None:
    """Neither knows what it loses. The records are of another GPU, which goes before the kernel's default."""
    package = write_package([recorded(tmp_path / "of-package", FAST, H200, n_accumulators=4)], tmp_path / "tuned")
    results = recorded(tmp_path / "results", SLOW, H100)
    assert "(default: " in asked([], FIELDS, Uncompiled(H200), package=package)[1]
    config, line = asked([], FIELDS, Uncompiled(H200), package=package, results=results)
    assert config == SLOW and "(architecture: not tuned on NVIDIA H200" in line


def test_nothing_is_compiled_on_host(tmp_path: Path) -> None:
    for known in known_on(BACKEND.device, tmp_path):
        kernels = Kernels(BACKEND, lambda line: None, **known)
        assert kernels.launcher("accumulate", **MORE)[0].config.WGS == DEFAULT.WGS
        line = asked([], {**FIELDS, "n_channels": 3000}, **known)[1]
        assert "(nearest: " in line and "gives way" not in line
        assert kernels.expected_time("accumulate", **FIELDS) is None


def test_the_best_known_time_is_expected(tmp_path: Path) -> None:
    (other,) = known_on(H100, tmp_path / "other")[1:]
    for known in known_on(H200, tmp_path):
        here = Kernels(Uncompiled(H200), print, **other | known)
        times = [here.expected_time("accumulate", **fields) for fields in (FIELDS, MORE)]
        assert [time and time.how for time in times] == [HERE, EXPECTED]
        assert times[0] and times[0].seconds == pytest.approx(1e-5)
        assert Kernels(Uncompiled(A100), print, **known).expected_time("accumulate", **FIELDS) is None
    elsewhere = Kernels(Uncompiled(H200), print, **other).expected_time("accumulate", **FIELDS)
    assert elsewhere and elsewhere.how == ELSEWHERE


def test_a_source_that_has_changed_is_told(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "render", lambda kernel, problem, config, numbered: SimpleNamespace(key="another"))
    config, line = asked([], package=package)
    assert config == FAST and line.endswith("; but its source has changed since); expected slowdown: unknown")


def test_a_package_answers_after_a_space_has_grown(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = Space(MORE=since(2, (1, 2)))
    grown.parameters = {**KERNEL.space.parameters, **grown.parameters}
    grown.constraints += KERNEL.space.constraints
    monkeypatch.setattr(type(KERNEL), "space", grown)
    config, _ = asked([], package=package)
    assert config == {**FAST, "MORE": 2}


def test_a_choice_is_made_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered, render = [], choices.render
    monkeypatch.setattr(choices, "render", lambda *words, **more: rendered.append(words) or render(*words, **more))
    told: list[str] = []
    kernels = Kernels(BACKEND, told.append, package=package)
    launchers = [kernels.launcher("accumulate", **FIELDS)[0] for _ in range(3)]
    kernels.launcher("accumulate", **dict(reversed(FIELDS.items())))
    assert (len(told), len(rendered), len(set(map(id, launchers)))) == (1, 1, 3)
    kernels.launcher("accumulate", **{**FIELDS, "n_channels": 4})
    assert len(told) == 2


@pytest.mark.quick
def test_what_is_wrong_is_told_in_one_line(package: Path, tmp_path: Path) -> None:
    unread = write_package([recorded(tmp_path / "unread", FAST)], tmp_path / "unread_package")
    (unread / "measured.json").write_text("{}")
    (package / "wisdom.json").write_text("{}")
    broken = recorded(tmp_path / "broken", FAST)
    next(broken.rglob("sweep.json")).write_text("{")
    for given, message in (
        ({"package": package}, "wisdom.json is damaged: "),
        ({"package": unread}, "measured.json is damaged: "),
        ({"package": "no_such.package"}, "no importable module of that name"),
        ({"package": "numpy"}, "with a wisdom.json"),
        ({"results": broken}, "sweep.json is damaged: "),
        ({"results": broken, "tune": "quick"}, "sweep.json is damaged: "),
        ({"results": tmp_path / "none"}, "holds no recorded sweep"),
        ({"results": tmp_path / "none", "tune": "hasty"}, "unknown effort 'hasty'"),
        ({"package": 3}, "package=3 must be"),
    ):
        with pytest.raises(UsageError) as raised:
            Kernels(BACKEND, print, **given)
        assert message in str(raised.value) and "\n" not in str(raised.value)
    for fields in ({"colour": 1}, {"n_channels": "many"}, {"n_channels": 0}):
        with pytest.raises(UsageError, match=next(iter(fields))):
            Kernels(BACKEND, print).launcher("accumulate", **fields)


def test_what_nobody_knows_is_tuned_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.EFFORTS, "quick", {"trials": 2, "finalists": 1, "finalist_samples": 3})
    told: list[str] = []
    config, line = asked(told, results=tmp_path / "results", tune="quick")
    assert told[0].startswith(f"tuning accumulate {problem_name(PROBLEM)} on host: ")
    assert any("  trial 2 of 2: best " in line for line in told)
    assert f"from records in {tmp_path / 'results'} (exact: " in line
    assert line.endswith("; expected slowdown: unknown, since only 2 of 504 configs were tried")
    n = len(told)
    assert asked(told, results=tmp_path / "results", tune="quick") == (config, line), "it is known now"
    assert len(told) == n + 1


def test_the_definition_knows_the_fewest_samples() -> None:
    fields = {"taps": 4, "n_channels": 16, "n_pols": 1, "n_spectra": 20}
    for bits, step in ((8, 32), (64, 16)):
        problem = Kernels(BACKEND, lambda line: None).launcher("pfb_fir", sample_bits=bits, **fields)[1]
        assert problem.n_samples == problem.n_needed == 23 * step
