"""Runs engines until someone stops them. A new engine begins when a stream begins anew, and after a fault.

These events end an engine:
- The stream jumps to a far time, for example because its sender has started again: a new engine begins there at once.
- All senders have announced their end, or a TCP sender is gone: a new engine begins at once, or with ``once`` none.
- The source cannot be read, for example because a port is taken: a new engine begins after 1, 2, 4 up to 30 s. If this
  is the first engine, the service ends.
- The device fails: a new engine begins, until 3 have failed within a minute.
- The last sink fails: the service ends.
"""

import gc
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field

from ...core.errors import UsageError, one_line
from ..files.reading import Tell
from ..network.receiver import JumpedError
from ..run.threads import ended_by, sleep_unless
from .alarms import LOOK_S, Alarms
from .served import LEVELS, Counts, Served, Serving, added, at_level, clock_time, counts_text, lag_text, made_text

STOPPED, NOT_TAKEN, GAVE_UP = 0, 1, 3  # exit statuses; 2 is for wrong usage
LONGEST_WAIT_S = 30.0
MOST_FAULTS, WITHIN_S = 3, 60.0
STATUS_S = 5.0
LONG_RUN_S = 60.0  # an engine that ran so long resets the waits


@dataclass
class ServiceState:
    """The state of a service: the running engine, and the counts of all engines so far."""

    n_engines: int = 0
    now: Served | None = None
    received: Counts = field(default_factory=dict)  # the counts of the engines before
    made: list[Counts] = field(default_factory=list)
    senders: Counts = field(default_factory=dict)  # the counts of the engines before, by the sender's name
    seen: Counts = field(default_factory=dict)  # the findings of the last look for alarms
    is_making: bool = False  # whether an engine is made now
    asked: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def stop(self) -> None:
        """Ask the service to end. Any thread and any signal handler may call it."""
        self.asked.set()
        if (now := self.now) is not None:
            now.engine.stop()

    def interrupt(self) -> None:
        """Ask the service to end, and raise SystemExit while an engine is made, which may take long."""
        self.stop()
        if self.is_making and self.now is None:
            raise SystemExit

    def snapshot(self) -> Counts:
        """Returns all counts: ``engines`` so far, ``received``, ``senders`` by name, and ``made`` for each output.

        Each sender has the time of its last heap besides, s since 1970. What ``Alarms.seen`` has is added.
        """
        with self.lock:
            received, outputs, senders = self.received, self.made, self.senders
            if self.now is not None:
                received, senders = added(received, self.now.received()), added(senders, _of_senders(self.now))
                outputs = _each_added(outputs, self.now.made())
        return {"engines": self.n_engines, "received": received, "senders": senders, "made": outputs} | self.seen

    def begin(self, served: Served) -> None:
        """Note the engine that is about to run."""
        self.now = served
        self.n_engines += 1
        if self.asked.is_set():
            served.engine.stop()

    def end(self) -> None:
        """Add the counts of the engine that has ended to those of the engines before."""
        with self.lock:
            assert self.now is not None
            self.received = added(self.received, self.now.received())
            self.senders = added(self.senders, _of_senders(self.now))
            self.made = _each_added(self.made, self.now.made())
            self.now = None


def run_service(
    serving: Serving,
    tell: Tell,
    *,
    once: bool = False,
    status_s: float = STATUS_S,
    state: ServiceState | None = None,
) -> int:
    """Runs engines until SIGINT, SIGTERM or ``state.stop``. Returns the exit status.

    Args:
        tell: takes a line of status every ``status_s`` seconds, and a line about each event.
        once: whether the service ends when all senders have announced their end.
    """
    serving.open()
    state = state or ServiceState()
    info, warning, wrong = (at_level(tell, level) for level in LEVELS)
    n_tries, faults, near = 0, deque[float](maxlen=MOST_FAULTS), clock_time(serving)
    alarms = Alarms(serving, tell)
    state.seen = alarms.seen
    with (
        suppress(SystemExit),
        quiet_where_lost(),
        stopped_by_signals(state.interrupt),
        told_every(status_s, info, lambda: status_line(serving, state)),
        done_every(LOOK_S, lambda: alarms.look(state.now)),
    ):
        while not state.asked.is_set():
            began, has_begun, state.is_making = time.monotonic(), False, False
            gc.collect()  # it frees memory and sockets of the engine before
            try:
                state.is_making = True
                state.begin(serving.served(near, state.n_engines + 1))
                has_begun, state.is_making = True, False
                if state.n_engines == 1:
                    info(f"heaps are received at {serving.listens_at}")
                    if lacking := serving.not_connected:
                        warning(f"nobody listens at {', '.join(lacking)} yet")
                newest = _run(state)
                if state.asked.is_set() or once or serving.is_file:
                    break
                info("the senders have ended; waiting for the next ones")
                near = newest if serving.sync_time_unix is None and newest is not None else clock_time(serving)
            except JumpedError as error:
                if serving.is_file:
                    wrong(f"{error}; a file cannot be read again")
                    return NOT_TAKEN
                near = error.time
                warning(f"the stream has jumped to sample {near}: a new engine begins there")
                serving.follow(error)
            except UsageError as error:
                wrong(one_line(str(error)))
                if has_begun or not state.n_engines:
                    return NOT_TAKEN
                sleep_unless(state.asked, min(2.0**n_tries, LONGEST_WAIT_S))
                n_tries += 1
            except Exception as error:
                wrong(one_line(f"the engine has failed: {type(error).__name__}: {error}"))
                faults.append(time.monotonic())
                if len(faults) == MOST_FAULTS and faults[-1] - faults[0] < WITHIN_S:
                    wrong(f"{MOST_FAULTS} engines have failed within {WITHIN_S:g} s: no new one is started")
                    return GAVE_UP
            if time.monotonic() - began > LONG_RUN_S:
                n_tries = 0
    return STOPPED


def _run(state: ServiceState) -> int | None:
    """Runs the engine of ``state`` to its end. Returns the time of the newest heap; raises what the engine raises."""
    served = state.now
    assert served is not None
    try:
        served.run()
    finally:
        newest = served.newest_time
        served.source.close()
        if served.engine.is_stopped:  # Ctrl-C, which the engine handles itself, ends the service, too
            state.asked.set()
        state.end()
    return newest


def status_line(serving: Serving, state: ServiceState) -> str:
    """Returns one line about all engines so far."""
    counts = state.snapshot()
    newest, unbelieved = (None, []) if (now := state.now) is None else (now.newest_time, now.unbelieved)
    parts = [counts_text(counts["received"], unbelieved), made_text(counts["made"]), lag_text(serving, newest)]
    if absent := state.seen.get("absent"):
        parts.append(f"nothing from {', '.join(absent)}")
    if state.n_engines > 1:
        parts.append(f"engine {state.n_engines}")
    return "; ".join(part for part in parts if part)


@contextmanager
def done_every(every_s: float, work: Callable[[], object]) -> Iterator[None]:
    """Calls ``work`` from a thread every ``every_s`` seconds while the block runs."""
    is_over = threading.Event()

    def run() -> None:
        while not is_over.wait(every_s):
            work()

    thread = threading.Thread(target=run, name="autotune-status", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def told_every(every_s: float, tell: Tell, line: Callable[[], str]) -> AbstractContextManager[None]:
    """Passes a changed ``line()`` to ``tell`` from a thread every ``every_s`` seconds while the block runs."""
    latest = ""

    def look() -> None:
        nonlocal latest
        if (now := line()) != latest:
            tell(now)
        latest = now

    return done_every(every_s, look)


def stopped_by_signals(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Makes the first SIGINT or SIGTERM call ``stop``; the second acts as before. It works in the main thread only."""
    return ended_by([signal.SIGINT, signal.SIGTERM], stop)


@contextmanager
def quiet_where_lost() -> Iterator[None]:
    """Shows no SystemExit that a handler raises in what Python calls when it frees an object, where it is lost."""
    show = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is SystemExit else show(lost)
    try:
        yield
    finally:
        sys.unraisablehook = show


def _each_added(before: list[Counts], now: list[Counts]) -> list[Counts]:
    return [added(a, b) for a, b in zip(before, now, strict=True)] if before else now


def _of_senders(served: Served) -> Counts:
    """Returns the counts of each sender of an engine by its name, and the time of its last heap."""
    found: Counts = {}
    for each in served.senders()[:-1]:
        last = {} if each.quiet_s is None else {"last_unix": round(time.time() - each.quiet_s, 2)}
        found[each.name] = each.counts | last
    return found
