"""Runs digitisers, F-engines and an X-engine for minutes by paced UDP: what is lost, and does anything grow?

    python benchmarks/network_soak.py --device cuda --seconds 300 --json soak.json

First it looks for the highest sample rate of those given at which nothing is lost for some seconds; then it runs at
half of that. Each process's memory and descriptors are looked at every few seconds. At the end every packet that was
sent must be in one counter of a receiver; what the kernel dropped is one of them.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PACKET, BITS, CHANNELS, HEAP, SYNC = 4096, 10, 4096, 256, 1700000000
NOT_PLACED = ("wrong_size", "foreign", "off_grid", "jumped", "early", "repeated", "too_old", "incomplete")
RECEIVED = ("placed", *NOT_PLACED, "kernel_drops")
LOOK_S = 5.0


def free_ports(n: int) -> list[int]:
    some = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(n)]
    for each in some:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in some]
    for each in some:
        each.close()
    return ports


def start(command: str, path: Path, log: Path, *more: object) -> "subprocess.Popen[str]":
    with open(log, "w") as errors:
        call = [sys.executable, "-m", "autotune", command, str(path), "--json", "--status", "1", *map(str, more)]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=errors, text=True)


def wait_for(log: Path, text: str, process: "subprocess.Popen[str]", seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while text not in log.read_text():
        if time.monotonic() > end or process.poll() is not None:
            raise SystemExit(f"{log}: {log.read_text()[-2000:]}")
        time.sleep(0.1)


def looked_at(process: "subprocess.Popen[str]") -> dict[str, int]:
    """Returns kilobytes in memory and open descriptors of a process."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (rss,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return {"rss_kb": rss, "descriptors": len(os.listdir(f"/proc/{process.pid}/fd"))}


def run(rate_hz: float, seconds: float, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Returns what all processes have counted at a sample rate, and how they grew."""
    n = args.antennas
    ports = free_ports(3 * n)
    chunk, transport = 1 << args.log_chunk, 'transport = "udp"\n'
    processes: dict[str, subprocess.Popen[str]] = {}
    names = [f"m{antenna}" for antenna in range(n)]
    rates = f"sample_rate_hz = {rate_hz}\nsync_time_unix = {SYNC}\n"
    listen = [f"127.0.0.1:{port}" for port in ports[2 * n :]]
    x = folder / "x.toml"
    x.write_text(
        f"antennas = {names}\nchannels = {CHANNELS}\nspectra_per_heap = {HEAP}\n{rates}accumulate = 16\n"
        f'batches_per_chunk = 4\n[from]\nlisten = {listen}\n{transport}[to]\nendpoints = "127.0.0.1:9"\n'
    )
    processes["x"] = start("xengine", x, folder / "x.log", "--device", args.device)
    for antenna, name in enumerate(names):
        samples = [f"127.0.0.1:{port}" for port in ports[2 * antenna : 2 * antenna + 2]]
        f, dsim = folder / f"f{antenna}.toml", folder / f"dsim{antenna}.toml"
        f.write_text(
            f'antenna = "{name}"\nfeng_id = {antenna}\nn_antennas = {n}\n{rates}chunk = {chunk}\n[from]\n'
            f"listen = {samples}\n{transport}[[to]]\nchannels = {CHANNELS}\ngains = 0.01\n"
            f'endpoints = "{listen[antenna]}"\n'
        )
        signals = ["tone(0.1e6, 0.3) + noise(0.1, seed=1)", "noise(0.1, seed=2)"]
        dsim.write_text(
            f"{rates}packet = {PACKET}\nsample_bits = {BITS}\nsignals = {json.dumps(signals)}\nperiod = {1 << 22}\n"
            f"[to]\nendpoints = {samples}\n{transport}"
        )
        processes[f"f{antenna}"] = start("fengine", f, folder / f"f{antenna}.log", "--device", args.device)
    for name in ("x", *(f"f{antenna}" for antenna in range(n))):
        wait_for(folder / f"{name}.log", "heaps are received at", processes[name])
    for antenna in range(n):
        processes[f"dsim{antenna}"] = start("dsim", folder / f"dsim{antenna}.toml", folder / f"dsim{antenna}.log")
    began, looks = time.monotonic(), []
    while time.monotonic() - began < seconds:
        try:
            time.sleep(min(LOOK_S, seconds))
        except KeyboardInterrupt:  # what has run until then is told
            seconds = time.monotonic() - began
        looks.append({name: looked_at(process) for name, process in processes.items()})
    counts: dict[str, Any] = {}
    for kind in ("dsim", "f", "x"):  # what was sent is received before its receiver ends
        for name, process in processes.items():
            if name.startswith(kind):
                process.send_signal(signal.SIGTERM)
        for name, process in processes.items():
            if name.startswith(kind):
                out, _ = process.communicate(timeout=60)
                if process.returncode or not out:
                    log = (folder / f"{name}.log").read_text()[-2000:]
                    raise SystemExit(f"{name} has ended with status {process.returncode}: {log}")
                counts[name] = json.loads(out)
        time.sleep(2)
    return {"rate_hz": rate_hz, "seconds": seconds, "counts": counts, "looks": looks}


def summary(found: dict[str, Any], n: int) -> dict[str, Any]:
    """Returns what was lost, and where."""
    counts = found["counts"]
    f = [counts[f"f{antenna}"] for antenna in range(n)]
    sent = [counts[f"dsim{antenna}"] for antenna in range(n)]
    x = counts["x"]
    return {
        "sent": sum(each["sent"] for each in sent),
        "behind_s": max(each["behind_s"] for each in sent),
        "in one counter": sum(each["received"][name] for each in f for name in RECEIVED),
        "kernel drops": sum(each["received"]["kernel_drops"] for each in (*f, x)),
        "F heaps": sum(each["made"][0]["heaps_out"] for each in f),
        "F heaps missing": sum(each["made"][0]["heaps_missing"] for each in f),
        "F chunks dropped": sum(each["made"][0]["chunks_dropped"] for each in f),
        "F heaps dropped or failed": sum(e["made"][0]["heaps_dropped"] + e["made"][0]["heaps_failed"] for e in f),
        "X heaps": sum(x["received"][name] for name in RECEIVED),
        "X heaps missing": x["made"][0]["heaps_missing"],
        "dumps": x["made"][0]["dumps_out"],
        "engines": max(each["engines"] for each in (*f, x)),  # the second one waits when the senders have ended
    }


def is_lossless(told: dict[str, Any], n: int) -> bool:
    """Returns whether n antennas lost nothing; the first heap of each may lack what came before its clock was known."""
    lost = ("kernel drops", "F chunks dropped", "F heaps dropped or failed", "X heaps missing")
    whole = not any(told[name] for name in lost) and told["F heaps missing"] <= n
    return whole and told["sent"] == told["in one counter"] and told["behind_s"] < 0.5 and told["engines"] <= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--antennas", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rates", type=float, nargs="*", default=[50e6, 100e6, 150e6, 200e6], help="in Hz, rising")
    parser.add_argument("--try-seconds", type=float, default=10.0)
    parser.add_argument("--log-chunk", type=int, default=23, help="samples of an F-engine's chunk, as a power of two")
    parser.add_argument("--json", type=Path, help="a file for all of it")
    args = parser.parse_args()
    best, everything = 0.0, []
    with tempfile.TemporaryDirectory() as folder:
        for rate_hz in args.rates:
            everything.append(run(rate_hz, args.try_seconds, args, Path(folder)))
            told = summary(everything[-1], args.antennas)
            print(f"{rate_hz / 1e6:g} MS/s of {args.antennas} antennas: {told}", flush=True)
            if not is_lossless(told, args.antennas):
                break
            best = rate_hz
        if best:
            everything.append(run(best / 2, args.seconds, args, Path(folder)))
            told = summary(everything[-1], args.antennas)
            print(f"{best / 2e6:g} MS/s for {args.seconds:g} s: {told}")
            print("nothing lost" if is_lossless(told, args.antennas) else "LOST", end="; ")
            looks = everything[-1]["looks"]
            for name in looks[0]:
                rows = [look[name] for look in looks[min(2, len(looks) - 1) :]]
                kb, fds = [row["rss_kb"] for row in rows], [row["descriptors"] for row in rows]
                print(
                    f"{name}: {kb[0] / 1e3:.0f} to {kb[-1] / 1e3:.0f} MB, {fds[0]} to {fds[-1]} descriptors", end="; "
                )
            print()
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
