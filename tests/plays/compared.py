"""Runs a play, and compares what the engine made and counted with what was written before."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.jobs.running import Running
from autotune.engines.service.run_service import ServiceState, run_service
from autotune.engines.service.x_service import XService, x_service_settings

from ..engines.network.ports import free_ports
from ..waiting import DEADLINE_S
from .drawn import TCP, Play
from .expected import Expected, expected, placed, possible_dumps, products
from .script import ANEW, PLACED, UNSURE, script
from .sent import Senders, n_entries

NAMED_S, SILENT_S = 3.0, 2.0  # a silent antenna is named within, and not before
SETTLED_S = 0.4  # in which all that was sent has come, where nobody announces an end
MISSING = (-(2**31), 1)
SENT = "what was sent.json"


@dataclass
class Played:
    """What came of a play. ``lines``: those that were told, with their times."""

    status: int | None
    counts: dict[str, Any]
    lines: list[tuple[float, str]]
    senders: Senders
    ended_at: float
    files: list[Path] = field(default_factory=list)


def write(play: Play, folder: Path) -> Expected:
    """Writes what is expected of a play, before it runs, and returns it as it is written."""
    path = folder / SENT
    path.write_text(json.dumps({"play": asdict(play), "expected": asdict(expected(play))}))
    return read(path)


def read(path: Path) -> Expected:
    said = json.loads(path.read_text())["expected"]
    for part in (said["received"], said["made"], *said["senders"].values()):
        part |= {name: tuple(bounds) for name, bounds in part.items()}
    return Expected(**said)


def faults(play: Play, folder: Path, named_s: float = NAMED_S) -> list[str]:
    """Returns what differs, in a line each, after a play for which the expectation is written."""
    written = read(folder / SENT)
    played = run(play, folder)
    found = [
        *_count_faults(written, played),
        *_naming_faults(play, written, played, named_s),
        *_dump_faults(play, played),
    ]
    if found and is_starved(played):
        return [
            f"{fault} (data were dropped: {played.counts['received']})" for fault in _dump_faults(play, played, True)
        ]
    return found


def is_starved(played: Played) -> bool:
    """Whether the machine was too slow: data were dropped, and are counted as such."""
    made = (played.counts["made"] or [{"chunks_dropped": 0, "dumps_dropped": 0}])[0]
    return bool(played.counts["received"]["kernel_drops"] or made["chunks_dropped"] or made["dumps_dropped"])


def run(play: Play, folder: Path) -> Played:
    """Runs an engine in a thread, and the senders beside it."""
    kind = socket.SOCK_STREAM if play.transport == TCP else socket.SOCK_DGRAM
    ports = free_ports(n_entries(play), kind)
    state, lines, statuses = ServiceState(), list[tuple[float, str]](), list[int]()
    told = threading.Condition()

    def tell(line: str) -> None:
        with told:
            lines.append((time.monotonic(), line))
            told.notify_all()

    serving = XService(x_service_settings(_file(play, ports, folder)), Running(device="host"), tell)

    def serve() -> None:
        statuses.append(run_service(serving, tell, once=True, status_s=1000.0, state=state))
        serving.close()
        with told:
            told.notify_all()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with told:
        told.wait_for(lambda: any("heaps are received at" in line for _, line in lines) or statuses, DEADLINE_S)
    senders = Senders(play, ports)
    asks = threading.Timer(play.n_turns * play.period_s + DEADLINE_S, state.stop)
    asks.start()
    try:
        senders.send(script(play))
        sent_at = time.monotonic()
        if not play.all_stop or play.kinds == "synchronised anew":
            time.sleep(SETTLED_S)
            state.stop()
        thread.join(DEADLINE_S)
    finally:
        asks.cancel()
        state.stop()
        senders.close()
    assert not thread.is_alive(), (play, lines)
    counts = json.loads(json.dumps(state.snapshot()))
    return Played(statuses[0] if statuses else None, counts, lines, senders, sent_at, sorted(folder.glob("vis*.h5")))


def _file(play: Play, ports: list[int], folder: Path) -> Path:
    path = folder / "x.toml"
    listen = [f"127.0.0.1:{port}" for port in ports]
    zero = time.time() - play.first * play.period_s
    own = {
        **dict(antennas=play.names, channels=play.channels, first_channel=play.first_channel),
        **dict(n_channels=play.n_channels, spectra_per_heap=play.spectra, bits=play.bits, accumulate=play.accumulate),
        **dict(batches_per_chunk=play.batches_per_chunk, sample_rate_hz=play.rate_hz, reorder_s=play.reorder_s),
        **({} if play.patience_s is None else dict(patience_s=play.patience_s)),
        **(dict(sync_time_unix=f"{zero:.3f}") if play.has_clock else {}),
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()]
    where = f'from = {{ transport = "{"tcp" if play.transport == TCP else "udp"}", listen = {json.dumps(listen)} }}'
    path.write_text("\n".join([*lines, where, 'to = { file = "vis.h5" }']) + "\n")
    return path


# ---------------------------------------------------------------------- what is compared
def _count_faults(written: Expected, played: Played) -> Iterator[str]:
    counts = played.counts
    if played.status != 0:
        yield f"the service has ended with status {played.status}: {played.lines[-3:]}"
    if counts["engines"] != written.engines:
        yield f"{counts['engines']} engines, must be {written.engines}"
    received, made = counts["received"], (counts["made"] or [{}])[0]
    parts = {"received": (received, written.received), "made": (made, written.made)}
    parts |= {name: (counts["senders"].get(name, {}), bounds) for name, bounds in written.senders.items()}
    for part, (found, bounds) in parts.items():
        for name, (least, most) in bounds.items():
            n = sum(found.get(each, 0) for each in name.split("+"))
            if not least <= n <= most:
                yield f"{part}: {name} is {n}, must be {least if least == most else f'{least} to {most}'}"


def _naming_faults(play: Play, written: Expected, played: Played, named_s: float) -> Iterator[str]:
    ready = next((at for at, line in played.lines if "heaps are received at" in line), 0.0)
    for sender, name in enumerate(play.names):
        named = [at for at, line in played.lines if " nothing from " in line and "INFO" not in line and name in line]
        sent = played.senders.sent_at[sender]
        for at in named:
            before = max([each for each in sent if each < at], default=ready)
            if at - before < SILENT_S:
                yield f"{name} is named as absent {at - before:.2f} s after its last heap"
        if (turn := written.absent.get(name)) is None:
            continue
        since = ready if turn < 0 else played.senders.last_before(sender, turn)
        if not any(0 < at - since <= named_s for at in named):
            yield f"{name} is silent, and not named within {named_s:g} s: {[round(at - since, 2) for at in named]}"


def _dump_faults(play: Play, played: Played, may_lack: bool = False) -> Iterator[str]:
    wires = script(play)
    possible = possible_dumps(play, placed(play, wires), placed(play, wires, PLACED, UNSURE))
    later = {(wire.sender, wire.time) for wire in wires if wire.fate == ANEW}
    seen = set[int]()
    for path in played.files:
        for dump in VisibilityDumps(path):
            heap, rest = divmod(dump.timestamp, play.heap_samples)
            if rest or heap in seen:
                yield f"a dump of {dump.timestamp} comes twice, or is not at a heap"
                continue
            seen.add(heap)
            known = possible.get(heap)
            is_new = known is None and all(
                (s, heap + k) in later for s in range(play.n_antennas) for k in range(play.accumulate)
            )
            if known is None and not (is_new and play.kinds == "synchronised anew"):
                yield f"a dump of heap {heap}, which was not sent whole by anyone"
                continue
            every = np.ones(play.n_antennas, bool)
            least, most = (0 * every, every) if known is None else (np.array(known.whole), np.array(known.may))
            yield from _value_faults(play, heap, dump, 0 * every if may_lack else least, most)
    lacking = [heap for heap, dump in possible.items() if dump.must and heap not in seen and any(dump.whole)]
    if lacking and not may_lack:
        yield f"{len(lacking)} dumps are not there, from heap {lacking[0]} on"


def _value_faults(play: Play, heap: int, dump: Any, least: np.ndarray, most: np.ndarray) -> Iterator[str]:
    """``least`` and ``most``: which antennas must be there, and which may be."""
    present = np.asarray(dump.present, bool)
    if (present & ~most).any() or (~present & least.astype(bool)).any():
        yield f"the dump of heap {heap} has {present.tolist()}, must be {least.tolist()}"
        return
    right, found = products(play, heap), np.asarray(dump.visibilities)
    pairs = [(j, i) for j in range(play.n_antennas) for i in range(j + 1)]
    for baseline, (j, i) in enumerate(pairs):
        expected_one = (
            right[:, baseline] if present[i] and present[j] else np.broadcast_to(MISSING, found[:, baseline].shape)
        )
        if not np.array_equal(found[:, baseline], expected_one):
            yield f"WRONG: the dump of heap {heap}, antennas {i} and {j}"
            return
