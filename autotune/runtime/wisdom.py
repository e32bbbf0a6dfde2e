"""The content of an emitted package's ``wisdom.json``: the fastest known configurations.

Medians are only compared with medians of the same device. The file contains a checksum: it must not be edited, and a
damaged file is never used.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ..core.config import Config, as_config
from ..core.device import Device, as_device
from ..core.errors import UsageError
from ..core.files import content_of
from ..core.schema import (
    Check,
    Unsound,
    as_amount,
    as_count,
    as_json_value,
    as_name,
    as_number,
    as_seconds,
    as_text,
    as_word,
    dataclass_of,
    mapping_of,
    members_of,
    optional,
    parse,
    seal,
    sealed,
    sequence_of,
)

FORMAT = 4
READABLE = (3, FORMAT)  # 3 also had the losses of tiers, as they were measured then
KEY = re.compile("[0-9a-f]{12}")  # key of a source: the start of its SHA-256


def as_source_key(value: object) -> str:
    """Checks for the key of a source."""
    if isinstance(value, str) and KEY.fullmatch(value):
        return value
    raise Unsound("is not a key of a source, which is 12 hexadecimal digits")


_VALUES = mapping_of(as_name, as_json_value)
_TEXTS = sequence_of(as_text)
_SECONDS, _COUNT = optional(as_seconds), optional(as_count)


@dataclass(frozen=True)
class Evidence:
    """The evidence that a configuration is correct, and how fast it was."""

    median_s: Annotated[float, as_seconds]
    q1_s: Annotated[float | None, _SECONDS] = None
    q3_s: Annotated[float | None, _SECONDS] = None
    default_median_s: Annotated[float | None, _SECONDS] = None  # median of the default configuration in the same sweep
    # the 95 % intervals allow it
    speed_up_interval: Annotated[tuple[float, float] | None, optional(sequence_of(as_amount, 2))] = None
    max_error: Annotated[float | None, optional(as_amount)] = None  # relative to rms(reference)
    verified_on: Annotated[tuple[str, ...], _TEXTS] = ()  # names of problems
    without: Annotated[tuple[str, ...], _TEXTS] = ()  # usual checks that were not made
    checked_launches: Annotated[int, as_count] = 0  # further launches of the timed problem, all correct
    registers: Annotated[int | None, _COUNT] = None
    shared_bytes: Annotated[int | None, _COUNT] = None
    spill_bytes: Annotated[int | None, _COUNT] = None
    ties: Annotated[int, as_count] = 0  # other configurations that were as fast
    n_tried: Annotated[int, as_count] = 0  # configs that the sweep tried; 0: unknown
    n_configs: Annotated[int | None, _COUNT] = None  # configs that were allowed; None: unknown
    compiler: Annotated[str, as_text] = ""
    commit: Annotated[str, as_text] = ""
    date: Annotated[str, as_text] = ""  # date of the sweep, UTC

    @property
    def speed_up(self) -> float | None:
        """Returns the default's median divided by this one."""
        return self.default_median_s / self.median_s if self.default_median_s else None


@dataclass(frozen=True)
class Loss:
    """The loss of choices of one lookup tier, measured on held-out recorded problems.

    A loss is the chosen configuration's median divided by the best one's, minus 1; both come from the same search.
    """

    where: Annotated[str, as_word]  # a device's name, or an architecture, for a device that was left out
    tier: Annotated[str, as_word]
    up_to: Annotated[float, as_number]  # largest predicted log(time / best) of these choices
    n: Annotated[int, as_count]  # choices
    median: Annotated[float, as_amount]
    bound: Annotated[float, as_amount]  # nine of ten lose no more


@dataclass(frozen=True)
class Entry:
    """The configuration to run for one sweep's problem: its winner, or a portfolio's member."""

    kernel: str
    device: Device
    baked: Mapping[str, object]
    runtime: Mapping[str, object]
    config: Config
    source_key: str  # sources/<key>.cu
    evidence: Evidence
    regret: float = 0.0  # median divided by the best one's, minus 1, both from the sweep's search; 0 for a winner


@dataclass(frozen=True)
class Fallback:
    """The default configuration of one set of baked fields, rendered, for devices without an entry."""

    kernel: Annotated[str, as_name]
    baked: Annotated[Mapping[str, object], _VALUES]
    config: Annotated[Config, as_config]
    source_key: Annotated[str, as_source_key]
    inputs: Annotated[tuple[str, ...], sequence_of(as_word)]  # names of a call's inputs, in order


@dataclass(frozen=True)
class Ahead:
    """A configuration that was predicted and rendered, when the package was written, for a problem without a record.

    There are several for each problem and architecture, the most promising first.
    """

    kernel: Annotated[str, as_name]
    arch: Annotated[str, as_word]
    baked: Annotated[Mapping[str, object], _VALUES]
    config: Annotated[Config, as_config]
    source_key: Annotated[str, as_source_key]


@dataclass(frozen=True)
class Wisdom:
    """All entries, and at least one fallback for each set of baked fields."""

    entries: tuple[Entry, ...]
    fallbacks: tuple[Fallback, ...]
    ahead: tuple[Ahead, ...] = ()
    tuner: str = field(default="", compare=False)  # the version that emitted it
    definitions: Mapping[str, str] = field(default_factory=dict)  # kernel -> path, if not installed; never opened
    described: Mapping[str, Device] = field(default_factory=dict, compare=False)  # devices of all kernels

    def devices(self) -> dict[str, Device]:
        return {**self.described, **{entry.device.name: entry.device for entry in self.entries}}

    def baked_sets(self, kernel: str) -> list[Mapping[str, object]]:
        """Returns the distinct sets of baked fields for ``kernel``."""
        sets: list[Mapping[str, object]] = []
        everything: tuple[Entry | Fallback, ...] = (*self.entries, *self.fallbacks)
        for entry in everything:
            if entry.kernel == kernel and dict(entry.baked) not in sets:
                sets.append(dict(entry.baked))
        return sets

    def as_json(self) -> str:
        """Returns JSON that can be diffed: an entry has the same place and layout in every emission."""
        devices = {name: dataclasses.asdict(device) for name, device in sorted(self.devices().items())}
        content = {
            "format": FORMAT,
            "tuner": self.tuner,
            **({"definitions": dict(sorted(self.definitions.items()))} if self.definitions else {}),
            "devices": devices,
            "entries": [_entry_as_json(entry) for entry in sorted(self.entries, key=_order)],
            "fallbacks": [
                _plain(f) for f in sorted(self.fallbacks, key=lambda f: (f.kernel, fields_text(f.baked), str(f.config)))
            ],
            **({"ahead": [_plain(one) for one in self.ahead]} if self.ahead else {}),
        }
        return json.dumps(seal(content), indent=2, allow_nan=False) + "\n"

    @staticmethod
    def load(path: Path, kernel: str = "") -> "Wisdom":
        """Reads ``wisdom.json``; with a name, only what is of this kernel, which takes less time.

        Raises:
            UsageError: when the file is missing, damaged, or of another format.
        """
        try:
            content = parse(content_of(path))
            written = content.get("format") if isinstance(content, dict) else None
            if type(written) is int and written not in READABLE:
                raise UsageError(f"{path} has format {written}, this reader knows {FORMAT}; emit it again")
            content = sealed(content, needed=True)
            if written == READABLE[0]:
                content.pop("losses", None)
            return _wisdom(_checked(_of_kernel(content, kernel) if kernel else content))
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}); `autotune emit` writes it") from error
        except Unsound as error:
            raise UsageError(f"{path} is damaged: {error}. Emit it again") from error


def fields_text(values: Mapping[str, object]) -> str:
    """Formats fields as ``taps=256,decimation=16``, which ``--problem`` accepts."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def _plain(entry: Fallback | Ahead) -> dict[str, object]:
    return {**dataclasses.asdict(entry), "baked": dict(entry.baked), "config": dict(entry.config)}


def _order(entry: Entry) -> tuple[str, str, str, str]:
    return entry.kernel, fields_text(entry.baked), entry.device.name, fields_text(entry.runtime)


def _entry_as_json(entry: Entry) -> dict[str, object]:
    speed_up = entry.evidence.speed_up
    return {
        "kernel": entry.kernel,
        "device": entry.device.name,
        "baked": dict(entry.baked),
        "runtime": dict(entry.runtime),
        "config": dict(entry.config),
        "source_key": entry.source_key,
        "speed_up": None if speed_up is None else round(speed_up, 3),  # for people; loading computes it again
        "regret": entry.regret,
        "evidence": dataclasses.asdict(entry.evidence),
    }


# ---------------------------------------------------------------------- reading
_ENTRY = {
    "kernel": as_name,
    "device": as_word,
    "baked": _VALUES,
    "runtime": _VALUES,
    "config": as_config,
    "source_key": as_source_key,
    "speed_up": optional(as_amount),
    "regret": as_amount,
    "evidence": dataclass_of(Evidence, needed=("median_s", "verified_on")),
}
_CONTENT = {
    "format": as_count,
    "tuner": as_text,
    "definitions": mapping_of(as_name, as_word),
    "devices": mapping_of(as_word, as_device),
    "entries": sequence_of(members_of(_ENTRY, needed=tuple(_ENTRY))),
    "fallbacks": sequence_of(dataclass_of(Fallback)),
    "ahead": sequence_of(dataclass_of(Ahead)),
}
_checked: Check = members_of(_CONTENT, needed=tuple(name for name in _CONTENT if name not in ("definitions", "ahead")))


def _of_kernel(content: Mapping[str, Any], kernel: str) -> dict[str, Any]:
    """Returns the content without the rows of other kernels."""

    def is_own(row: object) -> bool:
        return not isinstance(row, dict) or row.get("kernel") == kernel

    return {
        name: [row for row in rows if is_own(row)] if isinstance(rows, list) else rows for name, rows in content.items()
    }


def _wisdom(content: Mapping[str, Any]) -> Wisdom:
    """Returns the wisdom in ``content``; raises Unsound if an entry names a device that the file lacks."""
    devices: dict[str, Device] = content["devices"]
    if wrong := [name for name, one in devices.items() if name != one.name]:
        raise Unsound(f"the device {wrong[0]} has another name in its own record")
    if unknown := [row["device"] for row in content["entries"] if row["device"] not in devices]:
        raise Unsound(f"an entry names the device {unknown[0]}, which the file does not describe")
    rows = ({**row, "device": devices[row["device"]]} for row in content["entries"])
    entries = tuple(Entry(**{name: row[name] for name in row if name != "speed_up"}) for row in rows)
    definitions = content.get("definitions", {})
    return Wisdom(entries, content["fallbacks"], content.get("ahead", ()), content["tuner"], definitions, devices)
