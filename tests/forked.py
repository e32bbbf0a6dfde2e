"""Commands of autotune in processes of their own, which are forked from one that has imported what they need.

An interpreter that imports it takes most of a second of CPU, and a fork takes a quarter of that. What depends on how
Python is started, or on what it imports first, takes an interpreter of its own: `python -m autotune`.

`python -m tests.forked` is the process that is forked; its stdin is a socket, from which it takes its orders.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

IMPORTED = (
    *("optuna", "pandas", "h5py", "typer", "rich.progress", "rich.table"),
    *("autotune.sweep.run", "autotune.emit.writer", "autotune.validity.resume", "autotune.analysis.show"),
    *("autotune.devices.host", "autotune.devices.simulated", "autotune.trial.verify_configs"),
    "autotune.porting.call_tuning",
    *("autotune.engines.jobs", "autotune.engines.digitiser", "autotune.engines.x.engine"),
)  # neither the command line, whose consoles look at their terminal when they are made, nor spead2, which has threads
IF_INSTALLED = ("pydantic", *(() if os.path.exists("/dev/nvidiactl") else ("cupy",)))  # typer's; NVRTC's, without a GPU
MOST_BYTES = 1 << 17  # of an order
N_STREAMS = 3


class Command:
    """A running command, which is used as a ``subprocess.Popen`` that has pipes of text."""

    def __init__(self, *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        self.args = [str(word) for word in words]
        order = {"words": self.args, "cwd": str(cwd or Path.cwd()), "env": dict(os.environ if env is None else env)}
        out, err = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        self.pid = _asked(order, nothing, out[1], err[1])
        self._end = os.pidfd_open(self.pid)
        for each in (nothing, out[1], err[1]):
            os.close(each)
        self.stdout, self.stderr = os.fdopen(out[0]), os.fdopen(err[0])
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the status with which it has ended; None while it runs."""
        return self.returncode if self._has_ended(0.0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Returns the status with which it ends. Raises subprocess.TimeoutExpired."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Returns what it has written to stdout and stderr when it has ended. Raises subprocess.TimeoutExpired."""
        texts = ["", ""]

        def read(number: int, stream: Any) -> None:
            texts[number] = stream.read()

        threads = [
            threading.Thread(target=read, args=each, daemon=True) for each in enumerate((self.stdout, self.stderr))
        ]
        for thread in threads:
            thread.start()
        self.wait(timeout)
        for thread in threads:
            thread.join()
        return texts[0], texts[1]

    def cpu_s(self) -> float:
        """Returns the CPU seconds of a command that has ended, with those of the processes that it waited for."""
        return _asked({"milliseconds_of": self.pid}) / 1000

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._end, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        if "_end" in self.__dict__:
            os.close(self._end)

    def _has_ended(self, seconds: float | None) -> bool:
        if self.returncode is None and select.select([self._end], [], [], seconds)[0]:
            self.returncode = _asked({"status_of": self.pid})
        return self.returncode is not None


_lock = threading.Lock()
_orders: list[socket.socket] = []  # to the process that is forked, once there is one


def _asked(order: Mapping[str, Any], *streams: int) -> int:
    """Returns the number that answers an order."""
    with _lock:
        if not _orders:
            _orders.append(_started())
        socket.send_fds(_orders[0], [json.dumps(order).encode()], list(streams))
        return int(_orders[0].recv(64))


def _started() -> socket.socket:
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MOST_BYTES)
    root = Path(__file__).parents[1]
    process = subprocess.Popen([sys.executable, "-m", __spec__.name], stdin=its, cwd=root, start_new_session=True)
    its.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(orders: socket.socket) -> list[str] | None:
    """Forks for each order. Returns the words of a command in its process, and None in this one, when nobody asks."""
    used = dict[int, float]()  # CPU seconds of those that have ended
    while True:
        text, streams, _, _ = socket.recv_fds(orders, MOST_BYTES, N_STREAMS)
        if not text:
            return None
        order = json.loads(text)
        if "status_of" in order:
            _, status, usage = os.wait4(order["status_of"], 0)
            answer = os.waitstatus_to_exitcode(status)
            used[order["status_of"]] = usage.ru_utime + usage.ru_stime
        elif "milliseconds_of" in order:
            answer = round(1000 * used[order["milliseconds_of"]])
        elif (answer := os.fork()) == 0:
            orders.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(order["cwd"])
            os.environ.clear()
            os.environ.update(order["env"])
            sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
            words: list[str] = order["words"]
            return words
        for stream in streams:
            os.close(stream)
        orders.send(str(answer).encode())


def main() -> None:
    """Serves until the tests end, and in each process that is forked runs a command."""
    for name in (*IMPORTED, *filter(find_spec, IF_INSTALLED)):
        import_module(name)
    gc.freeze()  # what is there now stays
    words = _serve(socket.socket(fileno=os.dup(0)))
    if words is not None:
        from autotune.cli import main as run

        sys.argv = ["autotune", *words]
        run()


if __name__ == "__main__":
    main()
