"""What is known of the fastest configurations: the content of an emitted package's ``wisdom.json``.

Nothing here compares times of different devices; a median means something only beside others of its own device.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .definition import Device
from .errors import UsageError
from .space import Config

FORMAT = 2


@dataclass(frozen=True)
class Evidence:
    """Why a configuration may be trusted to be right, and how fast it was."""

    median_s: float
    q1_s: float | None = None
    q3_s: float | None = None
    default_median_s: float | None = None  # of the default configuration, in the same sweep
    max_error: float | None = None  # relative to rms(reference)
    verified_on: tuple[str, ...] = ()  # names of problems
    checked_launches: int = 0  # of the timed problem, on top: the outputs of all of them were right
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    ties: int = 0  # configurations that were as fast
    compiler: str = ""
    commit: str = ""
    date: str = ""  # of the sweep, UTC

    @property
    def speed_up(self) -> float | None:
        """The default's median over this one's."""
        return self.default_median_s / self.median_s if self.default_median_s else None


@dataclass(frozen=True)
class Loss:
    """What the choices of one tier of the lookup lost, on recorded problems that were left out to see.

    A loss is the chosen configuration's median over the best one's, both of the same sweep's search, minus one.
    """

    kernel: str
    where: str  # a device's name, an architecture (all its devices) or a kind of device (all its architectures)
    tier: str
    n: int  # choices whose loss was measured
    n_untold: int  # choices that were not measured where they would have run
    median: float
    worst: float


@dataclass(frozen=True)
class Entry:
    """The configuration to run for one sweep's problem: its winner, or a portfolio's member."""

    kernel: str
    device: Device
    baked: Mapping[str, Any]
    runtime: Mapping[str, Any]
    config: Config
    source_key: str  # sources/<key>.cu
    evidence: Evidence
    regret: float = 0.0  # median over the best one's, both of the sweep's search, minus one; a winner has none


@dataclass(frozen=True)
class Fallback:
    """The default configuration of one set of baked fields, rendered, for devices without an entry."""

    kernel: str
    baked: Mapping[str, Any]
    config: Config
    source_key: str
    inputs: tuple[str, ...]  # names of what a call takes, in order


@dataclass(frozen=True)
class Wisdom:
    """Every entry, a fallback or more for every set of baked fields, and what the tiers of the lookup lose."""

    entries: tuple[Entry, ...]
    fallbacks: tuple[Fallback, ...]
    losses: tuple[Loss, ...] = ()
    tuner: str = field(default="", compare=False)  # the version that emitted it

    def devices(self) -> dict[str, Device]:
        return {entry.device.name: entry.device for entry in self.entries}

    def baked_sets(self, kernel: str) -> list[Mapping[str, Any]]:
        """The distinct sets of baked fields there are for ``kernel``."""
        found: list[Mapping[str, Any]] = []
        everything: tuple[Entry | Fallback, ...] = (*self.entries, *self.fallbacks)
        for known in everything:
            if known.kernel == kernel and dict(known.baked) not in found:
                found.append(dict(known.baked))
        return found

    def loss(self, kernel: str, device: Device, tier: str) -> Loss | None:
        """What ``tier`` is known to lose on ``device``, or else on all of its architecture, or of its kind."""
        known = {loss.where: loss for loss in self.losses if (loss.kernel, loss.tier) == (kernel, tier)}
        return next((known[where] for where in (device.name, device.arch, device.kind) if where in known), None)

    def as_json(self) -> str:
        """Text that a person can diff: an entry has the same place and layout in every emission."""
        devices = {name: dataclasses.asdict(device) for name, device in sorted(self.devices().items())}
        content = {
            "format": FORMAT,
            "tuner": self.tuner,
            "devices": devices,
            "entries": [_entry_as_json(entry) for entry in sorted(self.entries, key=_order)],
            "fallbacks": [
                {**dataclasses.asdict(f), "baked": dict(f.baked), "config": dict(f.config)}
                for f in sorted(self.fallbacks, key=lambda f: (f.kernel, fields_text(f.baked), str(f.config)))
            ],
            "losses": [
                dataclasses.asdict(loss) for loss in sorted(self.losses, key=lambda x: (x.kernel, x.where, x.tier))
            ],
        }
        return json.dumps(content, indent=2, allow_nan=False) + "\n"

    @staticmethod
    def load(path: Path) -> "Wisdom":
        """Read ``wisdom.json``.

        Raises:
            UsageError: when it is not there, damaged, or of another format.
        """
        try:
            content = json.loads(path.read_text())
            if content["format"] != FORMAT:
                raise UsageError(f"{path} has format {content['format']}, this reader knows {FORMAT}; emit it again")
            devices = {name: device_of(values) for name, values in content["devices"].items()}
            entries = tuple(_entry(row, devices) for row in content["entries"])
            fallbacks = tuple(_fallback(row) for row in content["fallbacks"])
            losses = tuple(Loss(**row) for row in content["losses"])
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}); `autotune emit` writes it") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} is damaged ({type(error).__name__}: {error}); emit it again") from error
        return Wisdom(entries, fallbacks, losses, content.get("tuner", ""))


def fields_text(values: Mapping[str, Any]) -> str:
    """``taps=256,decimation=16``, as ``--problem`` takes it."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def _order(entry: Entry) -> tuple[str, str, str, str]:
    return entry.kernel, fields_text(entry.baked), entry.device.name, fields_text(entry.runtime)


def _entry_as_json(entry: Entry) -> dict[str, Any]:
    speed_up = entry.evidence.speed_up
    return {
        "kernel": entry.kernel,
        "device": entry.device.name,
        "baked": dict(entry.baked),
        "runtime": dict(entry.runtime),
        "config": dict(entry.config),
        "source_key": entry.source_key,
        "speed_up": None if speed_up is None else round(speed_up, 3),  # for the reader; computed when loaded
        "regret": entry.regret,
        "evidence": dataclasses.asdict(entry.evidence),
    }


def _entry(row: Mapping[str, Any], devices: Mapping[str, Device]) -> Entry:
    evidence = {**row["evidence"], "verified_on": tuple(row["evidence"]["verified_on"])}
    return Entry(
        kernel=row["kernel"],
        device=devices[row["device"]],
        baked=row["baked"],
        runtime=row["runtime"],
        config=Config(row["config"]),
        source_key=row["source_key"],
        evidence=Evidence(**evidence),
        regret=row["regret"],
    )


def _fallback(row: Mapping[str, Any]) -> Fallback:
    return Fallback(**{**row, "config": Config(row["config"]), "inputs": tuple(row["inputs"])})


def device_of(values: Mapping[str, Any]) -> Device:
    """A Device from its JSON, in which tuples are lists."""
    fixed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return Device(**fixed)
