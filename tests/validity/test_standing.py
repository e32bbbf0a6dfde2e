"""Records outlive comments: what is rewritten but does the same holds, and what does something else does not."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autotune import UsageError
from autotune.analysis.show import holds
from autotune.api import emit
from autotune.core.device import Device
from autotune.devices import cuda, host, machine_code
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.records.record import SweepRecord
from autotune.records.trial_log import append
from autotune.rendering.render import Variant, render
from autotune.runtime import nvrtc
from autotune.source.registry import load_kernel
from autotune.trial.compile import code_of
from autotune.validity import as_measured

from ..commands import autotune
from ..conftest import EXAMPLE
from ..sweep.test_verdict import copied_example

TEMPLATE = "detect.cu.j2"
HELD = "recorded trials are still valid: their source changed, their machine code did not"


def sweep(definition: Path, results: Path, *more: str) -> str:
    """One on the host; what it tells on the way."""
    command = ["sweep", "--kernel", definition, "--device", "host", "--only", "BLOCK_C=32", "--only", "UNROLL=1"]
    done = autotune(*command, *more, "--compile-processes", 1, "--results", results)
    assert done.returncode == 0, done.stderr
    return done.stderr


def copied(swept: tuple[Path, Path], folder: Path) -> tuple[Path, Path]:
    definition, results = swept
    shutil.copytree(definition.parent, folder / "kernel")
    shutil.copytree(results, folder / "results")
    return folder / "kernel" / definition.name, folder / "results"


def rows(results: Path) -> int:
    (folder,) = find_sweeps(results)
    return len(SweepFolder(folder.path).trials())


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A definition, and what a sweep of it recorded."""
    folder = tmp_path_factory.mktemp("swept")
    definition, results = copied_example(folder / "kernel"), folder / "results"
    sweep(definition, results)
    return definition, results


def swept_again(
    swept: tuple[Path, Path], folder: Path, name: str, pattern: str, replacement: str
) -> tuple[int, str, int]:
    """Trials of the sweep, what is told by one after an edit of the kernel's file ``name``, and the trials after that.

    The record is a copy, and the file is as it was afterwards.
    """
    definition, recorded = swept
    results = shutil.copytree(recorded, folder / "results")
    path = definition.with_name(name)
    text = path.read_text()
    edited, n_changed = re.subn(pattern, replacement, text)
    assert n_changed
    path.write_text(edited)
    try:
        return rows(recorded), sweep(definition, results), rows(results)
    finally:
        path.write_text(text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "pattern", "replacement"),
    [
        (TEMPLATE, r"\Z", "// a remark\n"),
        (TEMPLATE, r"// .*", "// another remark"),
        ("detect.py", r"\Z", "\n# a remark\n"),
        ("detect.py", r'"""voltage: unit-variance noise."""', '"""Noise."""'),
        ("detect.py", r"\bparts\b", "noise"),
        ("detect.py", r"n_samples = problem.n_time \* problem.n_chan", "n_samples = problem.n_chan * problem.n_time"),
    ],
)
def test_what_reads_differently_is_not_measured_again(
    swept: tuple[Path, Path], name: str, pattern: str, replacement: str, tmp_path: Path
) -> None:
    n, told, n_after = swept_again(swept, tmp_path, name, pattern, replacement)
    assert f"{n} {HELD}" in told and n_after == n and "measuring" not in told


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "pattern", "replacement"),
    [
        (TEMPLATE, r"sum \+= v\.x \* v\.x \+ v\.y \* v\.y", "sum += v.y * v.y + v.x * v.x"),
        ("detect.py", r"float\(4 \* np\.sqrt", "float(5 * np.sqrt"),
        ("detect.py", r"flops=4 \* n_samples", "flops=5 * n_samples"),
        ("detect.py", r"n_chan=config\.BLOCK_C \+ 1", "n_chan=config.BLOCK_C + 2"),
        ("detect.py", r"rng\.normal\(", "2 * rng.normal("),
    ],
)
def test_what_does_something_else_is_measured_again(
    swept: tuple[Path, Path], name: str, pattern: str, replacement: str, tmp_path: Path
) -> None:
    n, told, n_after = swept_again(swept, tmp_path, name, pattern, replacement)
    assert HELD not in told and n_after == 2 * n


@pytest.mark.thorough
def test_a_rewritten_definition_that_crashes_takes_no_sweep_along(tmp_path: Path) -> None:
    """What its digests are made of is asked in a process of its own, and so is all else."""
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    sweep(definition, results)
    text = definition.read_text()
    assert "parts = rng.normal(" in text
    definition.write_text(text.replace("parts = rng.normal(", "__import__('os')._exit(7)\n        parts = rng.normal("))
    again = autotune("sweep", "--kernel", definition, "--device", "host", "--trials", 4, "--results", results)
    assert again.returncode == 2 and "killed the process that made them" in again.stderr, again.stderr


def test_the_fastest_before_an_edit_is_tried_right_after_the_default(tmp_path: Path) -> None:
    """Its times no longer hold, but where they were least is where to begin."""
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    sweep(definition, results)
    (folder,) = find_sweeps(results)
    recorded = SweepFolder(folder.path)
    trials = recorded.trials()
    half = min(trial.median_s for trial in trials if trial.median_s) / 2
    # The last trial's config is not the default.
    fastest = replace(trials[-1], number=99, median_s=half, q1_s=half, q3_s=half, samples_s=(half,) * 3)
    append(recorded.path, fastest)
    template = definition.with_name(TEMPLATE)
    old, new = "sum += v.x * v.x + v.y * v.y", "sum += v.y * v.y + v.x * v.x"
    template.write_text(template.read_text().replace(old, new))
    words = ["sweep", "--kernel", definition, "--device", "host", "--trials", 3, "--sampler", "random"]
    again = autotune(*words, "--results", results)
    assert again.returncode == 0, again.stderr
    first, second, _ = (trial for trial in recorded.trials() if trial.number not in recorded.about().stale)
    assert first.config == load_kernel(str(definition)).default and second.config == fastest.config


# ---------------------------------------------------------------------- what else reads records
def test_emit_takes_a_winner_whose_machine_code_is_as_it_was(tmp_path: Path) -> None:
    definition, results, out = copied_example(tmp_path / "kernel"), tmp_path / "results", tmp_path / "tuned"
    sweep(definition, results)
    template = definition.with_name(TEMPLATE)
    template.write_text(template.read_text() + "// a remark\n")
    emitted = autotune("emit", results, "--out", out, "--kernel", definition)
    assert emitted.returncode == 0 and "1 text changed, and no machine code: they hold" in emitted.stderr
    assert any(path.read_text().endswith("// a remark\n") for path in out.glob("sources/*.cu"))
    template.write_text(template.read_text().replace("half > 0", "half > 1"))
    emitted = autotune("emit", results, "--out", out, "--kernel", definition)
    assert emitted.returncode == 2 and "and its machine code differs, too" in emitted.stderr


def test_what_was_recorded_without_digests_gets_them_while_its_text_is_as_it_was(tmp_path: Path) -> None:
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    sweep(definition, results)
    (folder,) = find_sweeps(results)
    for trial in (trials := folder.trials()):
        append(folder.path, replace(trial, code="", conditions="", compiler=""))
    (folder.path / "trials.csv").unlink()
    n = len(trials)
    undigested = shutil.copytree(results, tmp_path / "undigested")
    digested = autotune("digest", results, "--kernel", definition, "--compile-processes", 1)
    assert digested.stdout.startswith(f"digests      {n} new, 0 known"), digested.stderr
    again = autotune("digest", results, "--kernel", definition, "--compile-processes", 1)
    assert again.stdout.startswith(f"digests      0 new, {n} known")
    template = definition.with_name(TEMPLATE)
    template.write_text(template.read_text() + "// a remark\n")
    assert f"{n} {HELD}" in sweep(definition, results) and rows(results) == n
    assert all(trial.code for trial in find_sweeps(results)[0].trials()), "the table has them now"
    late = autotune("digest", undigested, "--kernel", definition, "--compile-processes", 1)
    assert f"{n} unavailable because their source has changed" in late.stdout
    assert HELD not in sweep(definition, undigested) and rows(undigested) == 2 * n


def test_show_says_whether_a_winner_holds_and_by_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    sweep(definition, results)
    (folder,) = find_sweeps(results)
    template = definition.with_name(TEMPLATE)
    text = template.read_text()
    monkeypatch.setattr(as_measured, "recorded_kernel", lambda about, named: load_kernel(str(definition)))
    compared: list[str] = []

    def counted(kind: str, variant: Variant, *given: Any) -> str:
        compared.append(variant.key)
        return code_of(kind, variant, *given)

    monkeypatch.setattr(as_measured, "code_of", counted)
    as_measured._still_makes.cache_clear()
    for edited, told, n_compared in (
        (text, "its text is unchanged", 0),
        (text + "// a remark\n", "its text has changed, its machine code has not", 1),
        (text.replace("half > 0", "half > 1"), "stale: the template of detect has changed since", 2),
    ):
        template.write_text(edited)
        for _ in range(2):
            assert holds(SweepRecord.of(folder)).startswith(told)
        assert len(compared) == n_compared, "a text is compiled once, however often it is asked for"
    monkeypatch.undo()
    assert holds(SweepRecord.of(folder)) == "", "a record does not choose the definition that is loaded"


def test_digests_of_texts_say_without_a_compiler_whether_a_winner_holds(
    swept: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition, results = copied(swept, tmp_path)
    template = definition.with_name(TEMPLATE)
    text = template.read_text()
    (folder,) = find_sweeps(results)
    monkeypatch.setattr(as_measured, "recorded_kernel", lambda about, named: load_kernel(str(definition)))
    for edited in (text + "// a remark\n", text.replace("half > 0", "half > 1")):
        template.write_text(edited)
        autotune("digest", results, "--kernel", definition, "--compile-processes", 1)

    def missing(device: Device) -> str:
        raise UsageError("there is no compiler here")

    monkeypatch.setattr(host, "compiler", missing)
    for edited, told in (
        (text, "its text is unchanged"),
        (text + "// a remark\n", "its text has changed, its machine code has not"),
        (text.replace("half > 0", "half > 1"), "stale: the template of detect has changed since"),
        (text + "// another remark\n", "unknown: the template of detect has changed since"),
    ):
        template.write_text(edited)
        assert holds(SweepRecord.of(folder)).startswith(told)
    with pytest.raises(
        UsageError, match=r"cannot be checked here: there is no compiler here; or store a digest where there is"
    ):
        emit(results, tmp_path / "tuned", kernels=[definition])
    template.write_text(text + "// a remark\n")
    emit(results, tmp_path / "tuned", kernels=[definition])


# ---------------------------------------------------------------------- spaces that grow
def grown(swept: tuple[Path, Path], folder: Path, value: int) -> tuple[Path, Path]:
    """Copies what was swept, and adds a parameter that is said to have had ``value``: 1 is true."""
    definition, results = copied(swept, folder)
    text = definition.read_text()
    line = "    UNROLL=(1, 4),"
    assert line in text
    text = text.replace(line, f"{line}\n    STRIDE=since({value}, when((1, 2), UNROLL=(1, 4))),")
    definition.write_text(text.replace("baked, ceil_div, runtime", "baked, ceil_div, runtime, since, when"))
    template = definition.with_name(TEMPLATE)
    source = template.read_text()
    assert "t += BLOCK_T)" in source
    template.write_text(source.replace("t += BLOCK_T)", "t += {{ '2 *' if config.STRIDE == 2 }} BLOCK_T)"))
    return definition, results


def test_records_and_winners_stay_valid_when_a_space_grows(swept: tuple[Path, Path], tmp_path: Path) -> None:
    definition, results = grown(swept, tmp_path, 1)
    n = rows(results)
    emit(results, tmp_path / "tuned", kernels=[definition])
    wisdom = json.loads((tmp_path / "tuned" / "wisdom.json").read_text())
    assert [entry["config"]["STRIDE"] for entry in wisdom["entries"]] == [1]
    assert wisdom["entries"][0]["evidence"]["median_s"] > 0
    told = sweep(definition, results, "--only", "STRIDE=1")
    assert f"{n} {HELD}" in told and rows(results) == n, "nothing is swept anew"
    (folder,) = find_sweeps(results)
    assert {t.config.STRIDE for t in folder.trials()} == {1}, "the record says what its older configs have"
    assert "STRIDE" not in (folder.path / "trials.csv").read_text()
    outcome = folder.outcome()
    assert outcome is not None and outcome.winner.config.STRIDE == 1


def test_a_space_that_grew_with_another_value_is_found_out_by_machine_code(
    swept: tuple[Path, Path], tmp_path: Path
) -> None:
    definition, results = grown(swept, tmp_path, 2)
    with pytest.raises(UsageError, match=r"has changed since: .* and its machine code differs, too"):
        emit(results, tmp_path / "tuned", kernels=[definition])


# ---------------------------------------------------------------------- digests of cubins
def code(source: str) -> str:
    cubin = nvrtc.compile_cubin(source, "detect", "sm_90")
    return machine_code.of_cubin(cubin.data, cubin.registers, cubin.spill_bytes, cubin.shared_bytes)


@pytest.mark.quick
def test_comments_names_and_order_leave_no_trace_in_machine_code() -> None:
    if (reason := nvrtc.available()) is not None:
        pytest.skip(reason)
    kernel, device = load_kernel(EXAMPLE), cuda.of_architecture("sm_90")
    problem = kernel.tuned[0]
    source = render(kernel, problem, kernel.default_config(problem, device)).source
    first = code(source)
    unused = "\n\n__device__ int unused() { return 1; }\n"
    for pattern, replacement in ((r"//.*", ""), (r"\bsum\b", "total"), (r"\A", unused)):
        text, n = re.subn(pattern, replacement, source)
        assert n and code(text) == first
    for pattern, replacement in (("half /= 2", "half /= 4"), ("half > 0", "half > 1"), (r"v\.x \* v\.x", "v.x * v.y")):
        text, n = re.subn(pattern, replacement, source)
        assert n and code(text) != first


def test_constants_leave_no_trace_but_for_what_they_do_to_the_code() -> None:
    """A compiler makes a variable of each constant, to which nothing refers."""
    if (reason := nvrtc.available()) is not None:
        pytest.skip(reason)
    text = """
constexpr int N_FIRST = 3;
constexpr bool IS_LAST = false;
extern "C" __global__ void detect(int* x) { *x = (*x & N_FIRST) + IS_LAST; }
"""
    first = code(text)
    in_shape = text.replace("constexpr int N_FIRST = 3;", "struct Shape { static constexpr int N_FIRST = 3; };")
    assert code(in_shape.replace("& N_FIRST", "& Shape::N_FIRST")) == first
    assert code(text.replace("N_FIRST", "N_OF_THE_FIRST")) == first
    assert code(f"constexpr int MORE = 9;\n__device__ int none[2] = {{1, 2}};\n{text}") == first
    assert code(text.replace("= 3;", "= 1;")) != first


def test_variables_that_code_refers_to_are_of_its_machine_code() -> None:
    if (reason := nvrtc.available()) is not None:
        pytest.skip(reason)
    text = """
__device__ const int table[4] = {1, 2, 5, 7};
__device__ int calls;
extern "C" __global__ void detect(int* x) { *x = table[*x & 3] + atomicAdd(&calls, 1); }
"""
    first = code(text)
    two_calls = "calls[2];\n#define calls calls[0]"
    for old, new in (("5, 7", "5, 8"), ("calls;", "calls = 4;"), ("2, 5", "5, 2"), ("calls;", two_calls)):
        assert code(text.replace(old, new, 1)) != first


def test_what_a_kernel_demands_of_its_launch_is_of_its_machine_code() -> None:
    if (reason := nvrtc.available()) is not None:
        pytest.skip(reason)
    head = 'extern "C" __global__ void __cluster_dims__({}, 1, 1) __launch_bounds__({}) detect(float* x) {{ *x = 1; }}'
    codes = [code(head.format(*demands)) for demands in ((2, 128), (4, 128), (2, 256), (2, 128))]
    assert len(set(codes)) == 3 and codes[0] == codes[3]
