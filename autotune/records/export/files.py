"""Where the exported files of one sweep, or of many, go."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...core.errors import UsageError
from ...core.files import write_whole
from ..folder import sweep_path
from ..recorded import Recorded
from . import kernel_tuner, t4

Contents = Mapping[str, str]  # the end of a file's name -> its text


def t4_files(sweep: Recorded) -> Contents:
    """The pair of a sweep."""
    return {"-results.json": json.dumps(t4.results(sweep)), "-metadata.json": json.dumps(t4.metadata(sweep), indent=1)}


def kernel_tuner_files(sweep: Recorded) -> Contents:
    """The one cache file of a sweep."""
    return {".json": kernel_tuner.cache(sweep)}


def write_each(sweeps: Sequence[Recorded], out: Path, contents: Callable[[Recorded], Contents]) -> list[Path]:
    """The files of every sweep, and where they are.

    One sweep and ``out`` ending in .json: beside one another, named from ``out``. Otherwise ``out`` is a folder, made
    where it is missing, with the layout of recorded sweeps: <device>/<kernel>/<problem>...

    Raises:
        UsageError: when ``out`` is a file and the sweeps are several, or when two of them would get the same name.
    """
    is_file = out.suffix == ".json" and not out.is_dir()
    if (is_file or out.is_file()) and len(sweeps) > 1:
        raise UsageError(f"{out} is one file, and there are {len(sweeps)} sweeps: name a folder with --out")
    if out.is_file() and not is_file:
        raise UsageError(f"{out} is a file that does not end in .json; name a folder, or a file x.json, with --out")
    stems: dict[Path, Recorded] = {}
    for sweep in sweeps:
        stem = out.with_suffix("") if is_file else sweep_path(out, sweep.device, sweep.kernel, sweep.problem_name)
        if stem in stems:
            raise UsageError(
                f"{stems[stem].folder.path} and {sweep.folder.path} are sweeps of the same problem on the same device "
                "and would be written to the same files; export them one by one"
            )
        stems[stem] = sweep
    written = []
    for stem, sweep in stems.items():
        for end, text in contents(sweep).items():
            stem.parent.mkdir(parents=True, exist_ok=True)
            written.append(write_whole(stem.with_name(stem.name + end), f"{text}\n".encode()))
    return written
