"""Says whether a rewritten template is still the same machine code: the kernels of a commit against the working tree.

    python benchmarks/machine_code.py --at main                     every kernel
    python benchmarks/machine_code.py --at main --kernel ddc        one
    python benchmarks/machine_code.py --at main --kernel ddc --only MMA=wgmma_int8 --only staged_odd
    python benchmarks/machine_code.py --at main --kernel ddc --trials    all recorded trials, not winners alone

Compared are the default of every problem that a definition names, every golden, and the winner and the default of every
recorded sweep. They are compiled for sm_90 by the NVRTC at hand; no GPU is needed. NVRTC gives some sources one of
several orders of instructions, so a source is asked again before it counts as different. Digests are kept in the cache
folder `machine-code`, by source, so what did not change is compiled once.

Prints Markdown: a table by kernel, and one of the variants that differ. Exits with 1 if any do.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from commits import unpack

import autotune
from autotune import Config, Kernel, TrialFailure, UsageError
from autotune.core.definition import baked_values, runtime_fields
from autotune.core.files import write_whole
from autotune.devices.cuda import of_architecture
from autotune.devices.machine_code import of_cubin
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.runtime import nvrtc
from autotune.source.registry import all_kernels, load_kernel
from autotune.system.cache import cache_dir

IS_OLD = not (Path(autotune.__file__).parent / "rendering").is_dir()  # a commit before rendering had a room
render = import_module(f"autotune.{'source' if IS_OLD else 'rendering'}.render").render

ROOT = Path(__file__).parents[1]
GOLDENS, RESULTS = ROOT / "tests" / "golden", ROOT / "results"
ARCH = "sm_90"
N_ASKED = 4  # compiles that may show that another text is the same machine code


@dataclass(frozen=True)
class Case:
    """A variant to compare, as JSON carries it to another tree."""

    kernel: str
    of: str  # what chose it: "default", "golden NAME", "winner", ...
    variant: str  # baked problem and config, as the first line of a source has them
    problem: Mapping[str, Any]
    config: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.of}: {self.variant}"


@dataclass
class Compiled:
    """The digests that one source has given so far, and its resources."""

    key: str
    codes: list[str]
    registers: int | None = None
    spill_bytes: int | None = None
    failure: str = ""

    def __str__(self) -> str:
        return self.failure or f"{self.registers} registers, {self.spill_bytes} spilled"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", metavar="COMMIT", help="what the working tree is compared with")
    parser.add_argument("--kernel", action="append", metavar="NAME", help="a kernel; default: all")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="variants whose line has it")
    parser.add_argument("--trials", action="store_true", help="all recorded trials, not winners and defaults alone")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N", help="compilers; default: CPUs")
    parser.add_argument("--render", action="store_true", help=argparse.SUPPRESS)  # in the tree of the commit
    asked = parser.parse_args()
    if asked.render:
        json.dump(list(rendered(json.load(sys.stdin))), sys.stdout)
        return 0
    if not asked.at:
        parser.error("--at COMMIT is missing: what is the working tree compared with?")
    kernels = {name: load_kernel(name) for name in asked.kernel} if asked.kernel else all_kernels()
    unique: dict[str, Case] = {}  # each variant once, as the first that chose it: goldens before records
    for case in (case for kernel in kernels.values() for case in cases(kernel, asked.trials)):
        unique.setdefault(case.variant, case)
    found = [case for case in unique.values() if not asked.only or any(text in str(case) for text in asked.only)]
    if not found:
        raise SystemExit(f"no variant of {', '.join(kernels)} has {' or '.join(asked.only)} in its line")
    as_json = [asdict(case) for case in found]
    before, after = rendered_at(asked.at, as_json), list(rendered(as_json))
    with ProcessPoolExecutor(asked.processes) as pool:
        pairs = list(pool.map(compare, (case.kernel for case in found), before, after, chunksize=1))
    differ = [(case, *pair[1:]) for case, pair in zip(found, pairs, strict=True) if not pair[0]]
    for line in tables(found, differ):
        print(line)
    return int(bool(differ))


def tables(found: list[Case], differ: list[tuple[Case, Compiled, Compiled]]) -> Iterator[str]:
    """Yields a row for each kernel, and below one for each variant that differs."""
    yield "| kernel | variants | identical | different |"
    yield "| --- | --- | --- | --- |"
    for kernel in dict.fromkeys(case.kernel for case in found):
        n, n_other = (sum(case.kernel == kernel for case in some) for some in (found, (d[0] for d in differ)))
        yield f"| {kernel} | {n} | {n - n_other} | {n_other} |"
    if differ:
        yield from ("", "| different | before | after |", "| --- | --- | --- |")
        yield from (f"| {case} | {before} | {after} |" for case, before, after in differ)


def cases(kernel: Kernel[Any], all_trials: bool) -> Iterator[Case]:
    """Yields the variants of ``kernel`` to compare."""
    device = of_architecture(ARCH)
    for problem in (*kernel.tuned, *kernel.extra_problems):
        yield _case(kernel, "default", problem, kernel.default_config(problem, device))
    if (path := GOLDENS / f"{kernel.name}.json").exists():
        for name, golden in json.loads(path.read_text()).items():
            yield _golden(kernel, name, golden["variant"])
    for folder in find_sweeps(RESULTS):
        about = folder.about()
        if about.kernel == kernel.name and about.device.kind == "cuda":
            for of, config in _recorded(folder, all_trials):
                yield _case(kernel, of, kernel.problem(about.problem), config)


def _case(kernel: Kernel[Any], of: str, problem: Any, config: Mapping[str, Any]) -> Case:
    baked = baked_values(problem)
    sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
    name = ",".join(f"{name}={value}" for name, value in baked.items())
    return Case(kernel.name, of, f"{kernel.name}[{name}\\|{Config(config)}]", {**baked, **sizes}, dict(config))


def _recorded(folder: SweepFolder, all_trials: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    if (outcome := folder.outcome()) is not None:
        for of, finalist in (("winner", outcome.winner), ("default", outcome.default)):
            if finalist is not None:
                yield of, dict(finalist.config)
    if all_trials:
        yield from ((f"trial {trial.number}", dict(trial.config)) for trial in folder.trials())


def _golden(kernel: Kernel[Any], of: str, variant: str) -> Case:
    """Returns the case of a variant's name, such as ``ddc[taps=256,decimation=16|ALGORITHM=register,WGS=64]``."""
    names = variant.removeprefix(f"{kernel.name}[").removesuffix("]").split("|")
    baked, chosen = (dict(item.split("=", 1) for item in part.split(",")) for part in names)
    problem = {name: _like(getattr(kernel.tuned[0], name), text) for name, text in baked.items()}
    values = {name: parameter.values[0] for name, parameter in kernel.space.parameters.items()}
    config = {name: _like(values[name], text) for name, text in chosen.items()}
    return _case(kernel, f"golden {of}", kernel.problem({**kernel.host_sizes, **problem}), config)


def _like(example: Any, text: str) -> Any:
    """Returns the value that prints as ``text``, of the type of ``example``."""
    return text == "True" if isinstance(example, bool) else type(example)(text)


def rendered(cases: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the source that this process's tree makes of each case; "" where it makes none."""
    for case in cases:
        kernel = load_kernel(case["kernel"])
        try:
            yield render(kernel, kernel.problem(case["problem"]), Config(case["config"])).numbered
        except (TrialFailure, UsageError) as failure:  # a field of its problem was added later
            print(f"{case['of']} of {case['kernel']}: {failure}", file=sys.stderr)
            yield ""


def rendered_at(commit: str, cases: list[dict[str, Any]]) -> list[str]:
    """Returns what the tree of ``commit`` makes of the cases, in a process that imports that tree."""
    with tempfile.TemporaryDirectory() as folder:
        if (why_not := unpack(ROOT, commit, ("autotune", "kernels", "templates"), Path(folder))) is not None:
            raise SystemExit(f"{commit} cannot be compared with: {why_not}")
        for part in ("kernels", "templates"):  # as they lie in a wheel: an editable install would add this tree's
            (Path(folder) / part).rename(Path(folder) / "autotune" / part)
        words = [sys.executable, __file__, "--render"]
        there = {**os.environ, "PYTHONPATH": folder}
        told = subprocess.run(words, input=json.dumps(cases), cwd=folder, env=there, stdout=subprocess.PIPE, text=True)
    if told.returncode:
        raise SystemExit(f"{commit} cannot be rendered by this script: it has another interface")
    sources: list[str] = json.loads(told.stdout)
    return sources


def compare(kernel: str, before: str, after: str) -> tuple[bool, Compiled, Compiled]:
    """Returns whether both sources may become the same machine code, and what they became."""
    first, second = known(kernel, before), known(kernel, after)
    for _ in range(N_ASKED - 1):
        if set(first.codes) & set(second.codes) or first.failure or second.failure:
            break
        first, second = known(kernel, before, anew=True), known(kernel, after, anew=True)
    is_same = bool(set(first.codes) & set(second.codes)) or (first.failure, first.key) == (second.failure, second.key)
    return is_same, first, second


def known(kernel: str, source: str, *, anew: bool = False) -> Compiled:
    """Returns what the cache knows of a source, compiled if it is not there; ``anew``: compiled once more."""
    key = nvrtc.cubin_key(source, ARCH)
    path = cache_dir("machine-code") / f"{kernel}-{key}-{_digester()}.json"
    found = Compiled(**json.loads(path.read_text())) if path.exists() else Compiled(key, [])
    if anew or not (found.codes or found.failure):
        try:
            cubin = nvrtc.compile_cubin(source, kernel, ARCH)
            code = of_cubin(cubin.data, cubin.registers, cubin.spill_bytes, cubin.shared_bytes)
            found.codes = sorted({*found.codes, code})
            found.registers, found.spill_bytes = cubin.registers, cubin.spill_bytes
        except TrialFailure as failure:
            found.failure = f"{failure.status}: {failure.message.splitlines()[0]}"
        write_whole(path, json.dumps(asdict(found)).encode())
    return found


@cache
def _digester() -> str:
    """Returns a digest of the code that makes digests, without which those kept would outlive it."""
    return hashlib.sha256(Path(sys.modules[of_cubin.__module__].__file__ or "").read_bytes()).hexdigest()[:8]


if __name__ == "__main__":
    sys.exit(main())
