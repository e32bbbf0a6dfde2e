"""Engines within this process, which must run in its main thread: a signal ends each, and leaves nothing behind."""

import faulthandler
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from autotune.engines.jobs.running import Running
from autotune.engines.service.f_service import FService, f_service_settings
from autotune.engines.service.run_service import ServiceState, run_service
from autotune.engines.service.served import Serving
from autotune.engines.service.x_service import XService, x_service_settings

from ..engines.run.test_stopping import f_engine, fx_engine, x_engine
from .fed import Fed

MOST_WAIT_S = 0.8  # from the call of an engine to the signal
KILLED_S = 30.0
BARE: dict[str, Callable[[], tuple[Any, Any]]] = {"F": f_engine, "FX": fx_engine, "X": x_engine}


class Signals:
    """Sends this process a signal, and notes what it was before the engine's own handlers: none may be lost."""

    def __init__(self, rng: Random, numbers: tuple[signal.Signals, ...]) -> None:
        self.number, self.after_s = rng.choice(numbers), rng.uniform(0, MOST_WAIT_S)
        self.sent_at: float | None = None
        self.outside: Callable[[], None] = lambda: None  # is called when no engine has handlers
        self.came_outside = False
        self._timer = threading.Timer(self.after_s, self._send)

    def _send(self) -> None:
        self.sent_at = time.monotonic()
        faulthandler.dump_traceback_later(KILLED_S, exit=True)
        os.kill(os.getpid(), self.number)

    def start(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._outside)
        self._timer.start()

    def _outside(self, number: int, frame: object) -> None:
        self.came_outside = True
        self.outside()

    def faults(self, most_s: float) -> list[str]:
        """What is wrong when the engine has ended."""
        took_s = time.monotonic() - (self.sent_at or time.monotonic())
        self._timer.cancel()
        self._timer.join()
        faulthandler.cancel_dump_traceback_later()
        found = [] if took_s <= most_s else [f"it has ended after {took_s:.2f} s"]
        if self.sent_at is None:
            found.append("it has ended before the signal")
        for each in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(each) != self._outside:
                found.append(f"{each.name} has another handler than before")
        return found


def tried(seed: int, folder: Path, fed: Fed, most_s: float) -> tuple[str, list[str]]:
    """Runs an engine that a signal ends. Returns what it was, and what is wrong, in a line each."""
    rng = Random(seed)
    kind = rng.choice(("fengine", "fengine", "xengine", "xengine", *BARE))
    if kind in BARE:
        signals = Signals(rng, (signal.SIGINT,))  # SIGTERM is the caller's
        what, wrong = f"{kind}, SIGINT", _bare(kind, signals, most_s)
    else:
        signals = Signals(rng, (signal.SIGINT, signal.SIGTERM))
        text = rng.choice([text for name, text in fed.cases() if name == kind])
        what = f"{kind} as a service, {signals.number.name}"
        ports = fed.sample_ports if kind == "fengine" else [fed.voltage_port]
        wrong = _service(kind, text, folder, signals, most_s) + [
            f"port {port} is still in use" for port in ports if not _is_free(port)
        ]
    what += " outside" * signals.came_outside
    return what, [f"{what} after {signals.after_s:.3f} s: {fault}" for fault in wrong]


def _bare(kind: str, signals: Signals, most_s: float) -> list[str]:
    engine, source = BARE[kind]()
    signals.outside = engine.stop
    signals.start()
    try:
        engine.run()
        found = [] if engine.is_stopped else ["it has ended by itself"]
    except BaseException:
        found = [f"it raises: {traceback.format_exc()}"]
    found += signals.faults(most_s)
    source.over.set()
    return found


def _service(kind: str, text: str, folder: Path, signals: Signals, most_s: float) -> list[str]:
    path = folder / f"{kind}.toml"
    path.write_text(text)
    lines, found = list[str](), list[str]()
    state, running = ServiceState(), Running(device="host")
    serving: Serving
    if kind == "fengine":
        serving = FService(f_service_settings(path), running, lines.append)
    else:
        serving = XService(x_service_settings(path), running, lines.append)
    signals.outside = state.stop
    signals.start()
    try:
        status = run_service(serving, lines.append, state=state, status_s=0.1)
        if status != 0:
            found.append(f"its status is {status}: {lines[-3:]}")
        state.snapshot()
    except BaseException:
        found.append(f"it raises: {traceback.format_exc()}")
    finally:
        serving.close()
    found += signals.faults(most_s)
    if state.now is not None:
        found.append("an engine is left")
    found += [f"it says: {line}" for line in lines if "has failed" in line]
    return found


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        try:
            again.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
