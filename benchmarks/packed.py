"""Compares records before and after `autotune pack`, value by value.

    python benchmarks/packed.py BEFORE AFTER

BEFORE are records of format 1, read here as the JSON that they are; AFTER is a packed copy, read by autotune. Each
member of each file is stored, follows from others, or is in DROPPED with the reason. The exit code is 1 if a value
differs.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any

from autotune import Config
from autotune.core.parameter import completed_config
from autotune.records.edge_sizes import verified_on
from autotune.records.folder import SweepFolder
from autotune.records.outcome import Finalist, Outcome
from autotune.records.trial import Trial

DROPPED = {
    "trials.jsonl samples_s": "only finalists keep samples; their number, median and quartiles stay",
    "trials.jsonl stamp": "a digest of texts that no longer exist: such trials are compared by machine code",
    "trials.jsonl sum": "a table has its own checksums",
    "sweep.json refused": "reasons of constraints that refused nothing are in the list of all reasons, with 0",
    "verdict.json stamps": "their numbers stay, as runs; a number is never used again",
    "sha256": "files have checksums of their own content",
}
TOLERANCE = {  # relative; the figures that are rounded
    **dict.fromkeys(("compile_s", "verify_s", "measure_s"), 0.06),
    **dict.fromkeys(("max_error", "rms_error"), 0.006),
    "clock_hz": 6e-4,
    **dict.fromkeys(("median_s", "q1_s", "q3_s", "interval_s"), 5.1e-7),
    "samples_s": 1e-7,
    "efficiency": 2e-6,
}
LEAST = dict.fromkeys(("compile_s", "verify_s", "measure_s"), 6e-5)  # seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    n, differences = Counter[str](), Counter[str]()
    for path in sorted(given.before.rglob("sweep.json")):
        folder = path.parent.relative_to(given.before)
        for what, is_same in compared(path.parent, SweepFolder(given.after / folder)):
            n[what] += 1
            if not is_same:
                differences[what] += 1
                if differences[what] <= 3:
                    print(f"differs: {what} of {folder}")
    sizes = [sum(p.stat().st_size for p in root.rglob("*") if p.is_file()) for root in (given.before, given.after)]
    n_trials = n["trials.jsonl number"]
    print(f"{sum(n.values())} values of {n_trials} trials and {n['verdict.json finalist']} finalists, by member:")
    for what, count in n.items():
        print(f"  {what:<36} {count:7}  {differences[what]} differ")
    for what, why in DROPPED.items():
        print(f"  dropped: {what}: {why}")
    for name, size in zip(("before", "after"), sizes, strict=True):
        print(f"{name:<6} {size / 1e6:6.2f} MB, {size / n_trials:6.1f} bytes a trial")
    return 1 if differences else 0


def compared(before: Path, after: SweepFolder) -> Iterator[tuple[str, bool]]:
    """Yields (member, whether it is the same) of each value of one sweep."""
    about, trials = after.about(), after.trials()
    by_number = {trial.number: trial for trial in trials}
    old_about = json.loads((before / "sweep.json").read_text())
    digests_file = before / "digests.json"
    digests = json.loads(digests_file.read_text()) if digests_file.exists() else {"codes": {}, "conditions": {}}
    for name, value in old_about.items():
        if name not in ("format", "sha256"):
            new = {reason: n for reason, n in about.refused.items() if n} if name == "refused" else about.content[name]
            yield f"sweep.json {name}", plain(new) == value
    lines = [json.loads(line) for line in (before / "trials.jsonl").read_text().splitlines()]
    rows = {row["number"]: row for row in lines}
    yield "trials.jsonl all trials", rows.keys() == by_number.keys()
    for number, row in rows.items():
        own = row.get("compiler") or old_about["compiler"]
        moved = {"code": digests["codes"].get(own, {}).get(str(number), "")}
        moved["conditions"] = digests["conditions"].get(str(number), "")
        moved["compiler"] = own if moved["code"] else ""
        row |= {name: value for name, value in moved.items() if not row.get(name)}
        yield from of_trial("trials.jsonl", row, by_number[number], about, trials)
    yield from of_verdict(json.loads((before / "verdict.json").read_text()), after.outcome(), about, trials)
    new = after.digests()
    for compiler, codes in digests["codes"].items():
        for number, code in codes.items():
            yield "digests.json codes", new.code(by_number[int(number)], compiler) == code
    for number, condition in digests["conditions"].items():
        yield "digests.json conditions", new.condition(by_number[int(number)]) == condition
    for compiler, texts in digests.get("texts", {}).items():
        for key, code in texts.items():
            yield "digests.json texts", new.texts[compiler][key] == code


def of_verdict(
    old: Mapping[str, Any], new: Outcome | None, about: Any, trials: list[Trial]
) -> Iterator[tuple[str, bool]]:
    assert new is not None
    for name in ("winner", "default"):
        finalist: Finalist | None = getattr(new, name)
        assert (old[name] is None) == (finalist is None)
        if finalist is not None:
            yield from of_trial(f"verdict.json {name}", old[name], finalist, about, trials)
    for row, finalist in zip(old["finalists"], new.finalists, strict=True):
        yield "verdict.json finalist", True
        yield from of_trial("verdict.json finalists", row, finalist, about, trials)
    for name, value in old.items():
        if name not in ("winner", "default", "finalists", "stamps", "sha256"):
            yield f"verdict.json {name}", same(plain(new.content[name]), value, 1e-6)
    if "stamps" in old:
        numbers = [n for first, last in new.trials or () for n in range(first, last + 1)]
        yield "verdict.json stamps' numbers", numbers == sorted(map(int, old["stamps"]))


def of_trial(
    where: str, row: Mapping[str, Any], trial: Trial, about: Any, trials: list[Trial]
) -> Iterator[tuple[str, bool]]:
    """Yields the comparison of each member of a trial's line, or of a finalist's row."""
    for name, value in row.items():
        if f"{where} {name}" in DROPPED or value is None:
            continue
        new: Any
        if name == "config":
            new, value = plain(trial.config), plain(completed_config(value, about.added))
        elif name == "reproduce":
            new = about.reproduce(trial.config).replace(str(trial.config), str(Config(row["config"])))
            value = value.replace("--device cuda:0", "--device cuda")
        elif name == "verified_on":
            *new, timed = verified_on(about, trial, trials)  # a stand-in has the parameters that were added since
            new.append(value[-1] if timed.startswith(value[-1].removesuffix(")")) else timed)
        elif name in ("code", "conditions", "compiler") and not value:
            continue  # a row of an older verdict does not say them
        else:
            new = plain(getattr(trial, name))
        yield f"{where} {name}", same(new, value, TOLERANCE.get(name, 1e-6), LEAST.get(name, 0.0))
    if where == "trials.jsonl":
        yield f"{where} number of samples", trial.n_samples == len(row["samples_s"])


def same(new: Any, old: Any, relative: float, least: float = 0.0) -> bool:
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(same(a, b, relative, least) for a, b in zip(new, old, strict=True))
    if isinstance(new, dict) and isinstance(old, dict):
        return not any(new[name] for name in new.keys() - old.keys()) and all(
            same(new[name], old[name], relative, least) for name in old
        )
    if isinstance(new, float) or isinstance(old, float):
        return isclose(new, old, rel_tol=relative, abs_tol=least)
    return bool(new == old and type(new) is type(old))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda other: dict(other) if hasattr(other, "keys") else vars(other)))


if __name__ == "__main__":
    sys.exit(main())
