"""How engines are begun again, and with which status a service ends."""

import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from autotune import UsageError
from autotune.engines.network.receiver import JumpedError
from autotune.engines.service import run_service as module
from autotune.engines.service.run_service import GAVE_UP, NOT_TAKEN, STOPPED, ServiceState, run_service, status_line
from autotune.engines.service.served import Served, added

from .in_process import untimed


class FakeReceiver:
    counts = {"placed": 10, "jumped": 1}
    newest_time = 4096
    unbelieved = [(0, 77), (1, 123456)]


class FakeSource:
    names, is_live = (), True

    def senders(self) -> list[Any]:
        return []

    def __init__(self) -> None:
        self.receiver = FakeReceiver()
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class FakeEngine:
    """Ends as it is told: by an error, of itself, or when it is stopped, which it has its service asked for."""

    def __init__(self, end: Any, ask: Callable[[], None]) -> None:
        self._end, self._asked, self._ask = end, threading.Event(), ask

    def run(self) -> None:
        if isinstance(self._end, BaseException):
            raise self._end
        if self._end == "stopped":
            self._ask()
            assert self._asked.wait(120)

    def stop(self) -> None:
        self._asked.set()

    @property
    def is_stopped(self) -> bool:
        return self._asked.is_set()


class FakeServing:
    sample_rate_hz, offset = 1e6, 0
    listens_at = "nowhere"
    is_file = False
    not_connected = ["127.0.0.1:7150"]

    def __init__(self, *ends: Any, sync_time_unix: Fraction | None = None) -> None:
        self.ends, self.near, self.sources = list(ends), list[int](), list[FakeSource]()
        self.sync_time_unix, self.state = sync_time_unix, ServiceState()

    def served(self, near: int, number: int) -> Served:
        self.near.append(near)
        end = self.ends.pop(0)
        if isinstance(end, Exception) and ("port" in str(end) or "memory for it" in str(end)):
            raise end
        source = FakeSource()
        self.sources.append(source)
        counts = {"heaps_out": 7, "heaps_missing": 2, "sink_error": ""}
        return Served(FakeEngine(end, self.state.stop), source, lambda: [dict(counts)])  # type: ignore[arg-type]

    def open(self) -> None:
        pass

    def follow(self, jump: JumpedError) -> None:
        self.followed = jump

    def close(self) -> None:
        pass


def run(serving: FakeServing, *, once: bool = False) -> tuple[int, list[str], Any]:
    told: list[str] = []
    state = serving.state
    code = run_service(serving, lambda line: told.append(untimed(line)), once=once, status_s=100, state=state)
    assert all(source.is_closed for source in serving.sources)
    if serving.sources:
        told.remove("heaps are received at nowhere")
        told.remove("nobody listens at 127.0.0.1:7150 yet")
    return code, told, state.snapshot()


def test_a_jump_is_followed_at_once_by_an_engine_there() -> None:
    serving = FakeServing(JumpedError(123456), JumpedError(77), "stopped")
    code, told, counts = run(serving)
    assert (code, serving.near) == (STOPPED, [0, 123456, 77])
    assert told == [f"the stream has jumped to sample {n}: a new engine begins there" for n in (123456, 77)]
    assert counts["engines"] == 3
    assert counts["received"] == {"placed": 30, "jumped": 3}
    assert counts["made"] == [{"heaps_out": 21, "heaps_missing": 6, "sink_error": ""}]


def test_senders_that_have_ended_are_waited_for_again_unless_once() -> None:
    code, told, _ = run(serving := FakeServing("ended", "ended", "stopped"))
    assert (code, serving.near) == (STOPPED, [0, 4096, 4096])
    assert told == ["the senders have ended; waiting for the next ones"] * 2
    code, told, counts = run(FakeServing("ended"), once=True)
    assert (code, told, counts["engines"]) == (STOPPED, [], 1)


def test_a_device_that_fails_three_times_in_a_minute_is_given_up() -> None:
    broken = RuntimeError("an illegal memory access")
    code, told, counts = run(FakeServing(broken, broken, broken, "ended"))
    assert (code, counts["engines"]) == (GAVE_UP, 3)
    assert told[0] == "the engine has failed: RuntimeError: an illegal memory access"
    assert told[-1] == "3 engines have failed within 60 s: no new one is started"


def test_an_engine_that_cannot_be_made_is_a_fault_of_the_device() -> None:
    lacks = MemoryError("there is no memory for it")
    code, told, counts = run(FakeServing("ended", lacks, "stopped"))
    assert (code, counts["engines"]) == (STOPPED, 2)
    assert "the engine has failed: MemoryError: there is no memory for it" in told
    assert run(FakeServing(lacks, lacks, lacks))[0] == GAVE_UP


def test_faults_that_lie_far_apart_are_no_reason_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WITHIN_S", 0.0)
    broken = RuntimeError("an illegal memory access")
    code, _, counts = run(FakeServing(broken, broken, broken, broken, "stopped"))
    assert (code, counts["engines"]) == (STOPPED, 5)


def test_a_port_that_is_taken_ends_it_at_first_and_is_tried_again_later() -> None:
    taken = UsageError("nothing can be received at 127.0.0.1:7148: the port is taken")
    code, told, _ = run(FakeServing(taken))
    assert (code, told) == (NOT_TAKEN, [str(taken)])
    began = time.monotonic()
    code, told, counts = run(FakeServing("ended", taken, "stopped"))
    assert (code, counts["engines"]) == (STOPPED, 2) and time.monotonic() - began > 1
    assert str(taken) in told


def test_the_last_sink_that_fails_ends_it() -> None:
    code, told, _ = run(FakeServing(UsageError("x.h5: no space left")))
    assert (code, told) == (NOT_TAKEN, ["x.h5: no space left"])


def test_waits_double_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, waits = UsageError("the port is taken"), list[float]()
    serving = FakeServing("ended", *[taken] * 7, "stopped")
    monkeypatch.setattr(module, "sleep_unless", lambda asked, seconds: waits.append(seconds))
    run(serving)
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_the_clock_says_where_the_first_engine_is_and_how_far_behind_the_samples_are() -> None:
    serving = FakeServing("ended", sync_time_unix=Fraction(time.time()) - 1000)
    run(serving, once=True)
    assert abs(serving.near[0] - 1_000_000_000) < 10_000_000
    state = ServiceState()
    serving.ends = ["ended"]
    state.begin(serving.served(0, 1))
    line = status_line(serving, state)
    assert line.startswith(
        "10 heaps in, 1 jumped (last: sender 0 at sample 77; sender 1 at sample 123456); 7 heaps out, 2 heaps missing; "
    )
    assert line.endswith("s behind the clock")


def test_counts_of_engines_add_up() -> None:
    assert added({"a": 1, "text": "x", "some": [1]}, {"a": 2, "b": 3, "text": "y", "some": [2]}) == {
        "a": 3,
        "b": 3,
        "text": "y",
        "some": [2],
    }


@pytest.mark.parametrize("where", ["it is made", "it has ended", "the next is waited for"])
def test_a_signal_while_no_engine_runs_ends_the_service_at_once(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = FakeServing("ended", UsageError("the port is taken"), "stopped")

    def raised(*_: object) -> Any:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("it goes on")

    if where == "it is made":
        monkeypatch.setattr(serving, "served", raised)
    elif where == "it has ended":
        monkeypatch.setattr(module, "clock_time", lambda _: raised() if serving.sources else 0)
    else:
        monkeypatch.setattr(serving.state.asked, "wait", raised)
    assert run_service(serving, lambda line: None, status_s=100, state=serving.state) == STOPPED  # type: ignore[arg-type]
    assert serving.state.asked.is_set()
