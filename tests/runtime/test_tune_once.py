"""One process tunes a problem at its first use, the others wait and read; what is kept is whole, or made anew."""

import dataclasses
import json
import multiprocessing
import os
import re
import signal
import stat
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from autotune import Config, UsageError
from autotune.core import kept
from autotune.core.problem import named_fields
from autotune.core.schema import Unsound
from autotune.runtime import gpu, tune_once
from autotune.runtime.tune_once import (
    Attempt,
    Effort,
    FirstUse,
    Surroundings,
    TunedHere,
    all_outcomes,
    checked_outcome,
    effort_of,
    fastest_here,
    folder_of_outcomes,
    keep_outcome,
)
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import DEFAULT, H100, H200, TALL, WIDE

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 100, "n_chan": 5000})
AROUND = Surroundings(H200, "580.82.07", "NVRTC 13.0.88 sm_90", "0" * 64)
CANDIDATES = [
    Attempt(config, origin, "0" * 12)
    for config, origin in ((WIDE, "predicted"), (DEFAULT, "default"), (TALL, "nearest record"))
]
SECONDS = (3e-5, 4e-5, 2e-5)


def without_gpu(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gpu, "synchronize", lambda: None)
    patch.setattr(gpu, "free_bytes", lambda index: 1 << 30)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "cache"))
    without_gpu(monkeypatch)
    return tmp_path / "cache"


def measured(one: Attempt, seconds: float) -> Attempt:
    times = {"median_s": seconds, "q1_s": 0.9 * seconds, "q3_s": 1.1 * seconds}
    return dataclasses.replace(one, status="measured", **times, n_samples=40, registers=32)


def answering(request: Mapping[str, Any], tell: Any, **changes: Any) -> dict[str, Any]:
    asked = checked_outcome(request["outcome"].encode())
    attempts = tuple(measured(one, seconds) for one, seconds in zip(asked.attempts, SECONDS, strict=True))
    at = datetime.now(UTC).isoformat()
    found = {"attempts": attempts, "winner": 2, "checked": ("n_time=100,n_chan=1",), "took_s": 1.5, "at": at}
    return {"outcome": dataclasses.replace(asked, **{**found, **changes}).as_json()}


class Tuner:
    """Counts what it is asked, and answers alike."""

    def __init__(self, refused: str = "", **changes: Any) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.refused, self.changes = refused, changes

    def __call__(self, request: Mapping[str, Any], tell: Any) -> dict[str, Any]:
        self.asked.append(request)
        return {"refused": self.refused} if self.refused else answering(request, tell, **self.changes)


def use(
    tuner: Any,
    told: list[str] | None = None,
    around: Surroundings = AROUND,
    candidates: Sequence[Attempt] = CANDIDATES,
    tell: Any = None,
) -> TunedHere | str:
    """One first use."""
    tell = tell or ([] if told is None else told).append
    asked = FirstUse(
        Effort(3),
        tell,
        place=lambda kernel, device: (around, "cuda:0", EXAMPLE),
        candidates=lambda kernel, problem, device, n: candidates,
        key_of=lambda kernel, problem, config: "0" * 12,
        tuner=lambda: tuner,
    )
    return asked.outcome(KERNEL, PROBLEM, around.device)


# ---------------------------------------------------------------------- what is asked for
@pytest.mark.quick
@pytest.mark.parametrize(
    ("tune", "effort"),
    [
        (None, None),
        (0, None),
        (2, Effort(2)),
        (4, Effort(4, 6.0)),
        ("16", Effort(16)),
        ("2 s", Effort(8, 2.0)),
        ("1.5s", Effort(8, 1.5)),
    ],
)
def test_an_effort_is_a_number_of_configs_or_a_time(tune: Any, effort: Effort | None) -> None:
    assert effort_of(tune) == effort


@pytest.mark.parametrize("tune", [1, 17, -4, True, 2.0, "many", "2 m", "0.1 s", "61 s", "", " 4"])
def test_other_efforts_are_refused(tune: Any) -> None:
    with pytest.raises(
        UsageError, match=re.escape(f"tune={tune!r} must be a number of configs from 2 to 16, or a time")
    ):
        effort_of(tune)


def test_the_environment_says_it_where_the_caller_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOTUNE_FIRST_USE", "5")
    assert effort_of(None) == Effort(5) and effort_of(2) == Effort(2) and effort_of(0) is None
    monkeypatch.setenv("AUTOTUNE_FIRST_USE", "lots")
    with pytest.raises(UsageError, match="AUTOTUNE_FIRST_USE='lots' must be"):
        effort_of(None)


# ---------------------------------------------------------------------- what is kept
@pytest.mark.quick
def test_a_second_use_reads_what_the_first_one_kept() -> None:
    tuner, told = Tuner(), list[str]()
    first = use(tuner, told)
    assert isinstance(first, TunedHere) and first.fastest is not None and first.fastest.config == TALL
    assert told == ["detect[n_time=100,n_chan=5000]: first use on NVIDIA H200, trying 3 configs"]
    assert use(tuner, told) == first and len(tuner.asked) == len(told) == 1
    (request,) = tuner.asked
    assert request["seconds"] == 6.0 and request["free_bytes"] == 1 << 30
    assert checked_outcome(request["outcome"].encode()).attempts == tuple(CANDIDATES)
    assert first.told() == f"the fastest of 3 configs on this machine's NVIDIA H200, {first.at[:10]}"
    assert list(all_outcomes(told.append)) == [first]


@pytest.mark.parametrize(
    "changed",
    [
        {"driver": "580.95.05"},
        {"compiler": "NVRTC 13.1.2 sm_90"},
        {"texts": "1" * 64},
        {"device": H100},
        {"device": dataclasses.replace(H200, max_clock_hz=1.98e9)},
    ],
)
def test_another_driver_compiler_template_or_card_does_it_again(changed: dict[str, Any]) -> None:
    tuner = Tuner()
    use(tuner)
    use(tuner, around=dataclasses.replace(AROUND, **changed))
    assert len(tuner.asked) == 2 and len(list(all_outcomes(pytest.fail))) == 2


def test_what_is_kept_is_found_by_what_was_asked_not_by_what_the_tuner_says() -> None:
    tuner = Tuner(problem={"n_time": 1}, surroundings=dataclasses.replace(AROUND, driver="another"))
    assert use(tuner) == use(tuner) and len(tuner.asked) == 1


@pytest.mark.parametrize(("last", "is_final"), [("wrong", True), ("timed_out", False), ("not_tried", False)])
def test_outcomes_without_a_winner_are_kept_only_if_they_are_final(last: str, is_final: bool) -> None:
    ends = ("wrong", "compile_failed", last)
    attempts = tuple(dataclasses.replace(one, status=end) for one, end in zip(CANDIDATES, ends, strict=True))
    tuner = Tuner(attempts=attempts, winner=None, checked=(), why="no candidate could be checked")
    for _ in range(2):
        found = use(tuner)
        assert isinstance(found, TunedHere) and found.fastest is None and found.why
    assert len(tuner.asked) == (1 if is_final else 2)


def test_refusals_are_not_kept() -> None:
    refusing = Tuner(refused="the device is still in use")
    assert use(refusing) == use(refusing) == "the device is still in use" and len(refusing.asked) == 2


def test_with_the_default_alone_nothing_is_tuned() -> None:
    tuner = Tuner()
    found = use(tuner, candidates=CANDIDATES[1:2], tell=pytest.fail)
    assert "nothing to compare" in str(found) and not tuner.asked


def path() -> Path:
    return TunedHere(KERNEL.name, named_fields(PROBLEM), AROUND).path


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 1}', b'{"format": 2}', b"\xff"])
def test_a_damaged_outcome_is_told_in_one_line_and_made_anew(content: bytes) -> None:
    tuner, told = Tuner(), list[str]()
    first = use(tuner)
    path().write_bytes(content)  # its digest is another one
    kept_so = path().with_name("other.first")
    kept.keep(kept_so, content, {})  # its digest is right, and its content is not an outcome
    assert list(all_outcomes(told.append)) == [] and len(told) == 2, told
    assert all("is not used, and made anew" in line and "\n" not in line for line in told)
    again = use(tuner)
    assert isinstance(first, TunedHere) and isinstance(again, TunedHere)
    assert dataclasses.replace(again, at=first.at) == first and len(tuner.asked) == 2
    assert use(tuner) == again and len(tuner.asked) == 2


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("kernel",), "rm -rf"),
        (("took_s",), -1.0),
        (("winner",), 3),
        (("winner",), -1),
        (("checked",), "all"),
        (("further",), 1),
        (("surroundings", "device", "name"), None),
        (("surroundings", "driver"), 580),
        (("attempts", 2, "median_s"), None),
        (("attempts", 0, "median_s"), 0.0),
        (("attempts", 0, "source_key"), "../../x"),
        (("attempts", 0, "status"), "fine"),
        (("attempts", 0, "config"), ["BLOCK_C"]),
        (("attempts", 0, "n_samples"), 1.5),
    ],
)
def test_each_value_is_checked_as_it_is_read(place: tuple[Any, ...], value: object) -> None:
    found = use(Tuner())
    assert isinstance(found, TunedHere) and checked_outcome(found.as_json().encode()) == found
    content = part = json.loads(found.as_json())
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    with pytest.raises(Unsound):
        checked_outcome(json.dumps(content).encode())


def test_an_outcome_that_others_may_write_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    tuner, told = Tuner(), list[str]()
    use(tuner)
    path().chmod(0o666)
    use(tuner, told)
    assert len(tuner.asked) == 2 and stat.S_IMODE(path().stat().st_mode) == 0o600, "it is written again"


def test_a_cache_that_cannot_be_written_costs_only_the_keeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path / "file"))
    tuner, told = Tuner(), list[str]()
    first = use(tuner, told)
    assert isinstance(first, TunedHere) and first.fastest is not None
    assert len(told) == 2 and "its first use is not kept for other processes" in told[1]
    assert use(tuner, told) is first and len(tuner.asked) == 1, "this process remembers it"


def test_the_latest_configs_of_a_problem_come_first_for_a_sweep() -> None:
    use(Tuner())
    use(Tuner(winner=0), around=dataclasses.replace(AROUND, driver="later"))
    found = sorted(all_outcomes(pytest.fail), key=lambda one: one.surroundings.driver == "later")
    later = dataclasses.replace(found[1], at="2999-01-01T00:00:00+00:00")
    assert keep_outcome(later) is None
    assert fastest_here(KERNEL, PROBLEM, H200, pytest.fail) == (WIDE, TALL)
    assert fastest_here(KERNEL, PROBLEM, H100, pytest.fail) == ()
    assert fastest_here(KERNEL, KERNEL.problem({"n_time": 100, "n_chan": 5001}), H200, pytest.fail) == ()


def test_configs_that_the_space_no_longer_has_do_not_begin_a_sweep() -> None:
    gone = [dataclasses.replace(one, config=Config({**one.config, "BLOCK_C": 7})) for one in CANDIDATES]
    assert isinstance(use(Tuner(), candidates=gone), TunedHere)
    assert fastest_here(KERNEL, PROBLEM, H200, pytest.fail) == ()


# ---------------------------------------------------------------------- several processes
def slowly(request: Mapping[str, Any], tell: Any) -> dict[str, Any]:
    """Tunes until all others wait, which a file for each says."""
    folder = Path(os.environ["AUTOTUNE_CACHE_DIR"]).parent
    (folder / f"tunes-{os.getpid()}").touch()
    while len(list(folder.glob("waits-*"))) < int(os.environ["N_WAITING"]):
        time.sleep(0.01)
    return answering(request, tell)


def one_of_many(pipe: Any, hangs: bool) -> None:
    """One process of several that use the problem for the first time; sends what it found."""
    folder = Path(os.environ["AUTOTUNE_CACHE_DIR"]).parent

    def tell(line: str) -> None:
        if "waiting" in line:
            (folder / f"waits-{os.getpid()}").touch()

    def hanging(request: Mapping[str, Any], line: Any) -> dict[str, Any]:
        (folder / f"tunes-{os.getpid()}").touch()
        time.sleep(1000)
        return {}

    tuner = hanging if hangs else slowly
    with pytest.MonkeyPatch.context() as patch:
        without_gpu(patch)
        pipe.send(use(tuner, tell=tell))


def started(n: int, hangs: bool = False) -> list[tuple[Any, Any]]:
    """So many processes, each with the pipe from it."""
    spawn = multiprocessing.get_context("spawn")
    found = []
    for _ in range(n):
        ours, its = spawn.Pipe(duplex=False)
        process = spawn.Process(target=one_of_many, args=(its, hangs), daemon=True)
        process.start()
        found.append((process, ours))
    return found


def until(folder: Path, pattern: str, n: int = 1) -> list[Path]:
    """Waits until ``n`` files of this name are there."""
    end = time.monotonic() + 120
    while len(found := list(folder.glob(pattern))) < n:
        assert time.monotonic() < end, f"{len(found)} of {n} {pattern}"
        time.sleep(0.02)
    return found


def test_of_eight_processes_at_once_one_tunes_and_all_have_its_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("N_WAITING", "7")
    processes = started(8)
    found = [pipe.recv() for _, pipe in processes]
    assert len(list(tmp_path.glob("tunes-*"))) == 1 and len(list(tmp_path.glob("waits-*"))) == 7
    assert all(one == found[0] and one.fastest.config == TALL for one in found)
    for process, _ in processes:
        process.join()


def test_a_process_that_is_killed_while_it_tunes_leaves_nothing_and_those_who_wait_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("N_WAITING", "0")
    ((first, _),) = started(1, hangs=True)
    until(tmp_path, "tunes-*")
    (waiting,) = started(1)
    until(tmp_path, "waits-*")
    os.kill(first.pid, signal.SIGKILL)
    assert "another process began to tune it, and has kept nothing" in waiting[1].recv()
    assert list(all_outcomes(pytest.fail)) == [] and len(list(tmp_path.glob("tunes-*"))) == 1
    assert {path.suffix for path in folder_of_outcomes().iterdir()} == {".lock"}
    tuner = Tuner()
    assert isinstance(use(tuner), TunedHere) and len(tuner.asked) == 1, "the next start tunes it"
    for process in (first, waiting[0]):
        process.join()


def test_who_waits_too_long_goes_on_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_once, "WAIT_S", 0.1)
    ((first, _),) = started(1, hangs=True)
    until(tmp_path, "tunes-*")
    tuner, told = Tuner(), list[str]()
    found = use(tuner, told)
    assert found == "another process began to tune it, and has kept nothing after at most 0.1 s" and not tuner.asked
    assert told == ["detect[n_time=100,n_chan=5000]: waiting, since another process tunes it"]
    first.kill()
    first.join()


@pytest.mark.parametrize("n_written", range(5))
def test_a_kill_at_any_write_leaves_a_whole_outcome_or_none(n_written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends at its ``n_written``-th step of writing: a temporary file, or a rename."""
    steps = iter(range(5))

    class Killed(BaseException):
        pass

    def counted(function: Any) -> Any:
        def step(*arguments: Any, **named: Any) -> Any:
            if next(steps, None) == n_written:
                raise Killed
            return function(*arguments, **named)

        return step

    tuner, was_killed = Tuner(), False
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", counted(os.replace))
        patch.setattr(Path, "write_bytes", counted(Path.write_bytes))
        try:
            use(tuner)
        except Killed:
            was_killed = True
    assert was_killed == (n_written < 4)
    again = use(tuner, [])
    assert isinstance(again, TunedHere) and len(tuner.asked) == 1 + was_killed
