"""Writes the definition of a called kernel: readable Python, its template, and its arrays as ``.npy``.

The folder's name contains a digest of the kernel, so calls of one kernel find one definition, and its records. An
existing file is kept only if it belongs to this user and has the right content; otherwise it is written anew.
"""

import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from ..core.errors import UsageError
from ..core.files import lock, named_errors, write_whole
from ..core.kept import is_own
from ..source.registry import load_kernel
from .answers import Outputs, stored_answer
from .array_memory import digest_of
from .formula_tables import table_of
from .formulas import Formulas
from .known_calls import CALLS, N_DIGITS, KnownCall, KnownCalls
from .sizes import sizes_of_call
from .text import definition_text

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ARRAYS = "arrays"


def write_definition(formulas: Formulas, outputs: Outputs, results: Path) -> Path:
    """Writes the definition of a call's kernel below ``results``, with the calls that are known; returns its path.

    Raises:
        UsageError: if no config is allowed, the files cannot be written, or another user could change them.
    """
    root = results / "definitions"
    try:
        for each in (root, root / ARRAYS):
            _make(each)
        with _locked(root):
            return _written(formulas, outputs, results)
    except OSError as error:
        raise UsageError(f"{root}: the definition cannot be written: {error.strerror}") from error


def _written(formulas: Formulas, outputs: Outputs, results: Path) -> Path:
    call, table = formulas.call, table_of(formulas)
    sizes_given = call.problem_size if isinstance(call.problem_size, tuple | list) else (call.problem_size,)
    if table is None and not any(map(callable, (*sizes_given, *(call.defines or {}).values()))):
        known = KnownCalls.of(call, results)
        sizes = sizes_of_call(call, [each.sizes for each in known.calls])
        whole = known.widened(call)
        if sizes != formulas.sizes or whole.space != call.space:
            formulas = Formulas.of(whole, sizes)
    else:  # functions know one call
        known = KnownCalls.of(call, results, (table, formulas.grid, formulas.defines, formulas.sizes.calls))
    known = known.with_call(formulas.call, KnownCall.of(call, formulas.sizes.calls[-1], outputs))
    sources = table.sources if table is not None else ()
    text = definition_text(formulas, known, table, {**known.since, **call.default})
    files = {f"{call.name}.cu.j2": formulas.template(is_one=not sources).encode(), f"{call.name}.py": text.encode()}
    files[CALLS] = known.written()
    if sources:
        files["sources.json"] = json.dumps(sources).encode()
    arrays = {each.name: (each.memory.digest, each.memory.stored) for each in call.arrays}
    answers = {name: stored_answer(answer) for name, answer in outputs.compared.items()}
    arrays |= {f"answer.{name}": (digest_of(answer), answer) for name, answer in answers.items()}
    named = {f"{name}.{digest[:N_DIGITS]}.npy" for each in known.calls for name, digest in each.files.items()}
    _make(known.folder)
    _write(known.folder, files, named, results / "definitions" / ARRAYS, arrays)
    load_kernel.cache_clear()  # this process may have the definition without this call
    return known.folder / f"{call.name}.py"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a lock of a folder, so that two calls are not written at a time. A file system without locks has none."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(UsageError):
            lock(place, folder, "", waits=True)
        yield
    finally:
        os.close(place)


def _make(folder: Path) -> None:
    """Makes a folder that only this user may write.

    Raises:
        UsageError: if the folder belongs to another user, since definitions in it are run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise UsageError(
            f"{folder} belongs to user {status.st_uid}, and definitions in it are run: name another folder of "
            "results, or remove it"
        )
    if status.st_mode & OTHERS_WRITE and status.st_uid == os.geteuid():
        folder.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)


def _write(
    folder: Path,
    files: Mapping[str, bytes],
    named: Collection[str],
    store: Path,
    arrays: Mapping[str, tuple[str, np.ndarray]],
) -> None:
    """Writes missing and changed files, and removes all others from the folder; ``named``: arrays of all calls."""
    for path_found in folder.iterdir():
        if path_found.name in files or path_found.name in named:
            continue
        if path_found.is_dir() and not path_found.is_symlink():
            shutil.rmtree(path_found)
        else:
            path_found.unlink(missing_ok=True)
    for name, (content, array) in arrays.items():
        _store(store, content, array, folder / f"{name}.{content[:N_DIGITS]}.npy")
    for name, data in files.items():
        path = folder / name
        if not is_own(path) or path.read_bytes() != data:
            write_whole(path, data, mode=0o644)


def _store(store: Path, content: str, array: np.ndarray, path: Path) -> None:
    """Saves an array once for all definitions that use it, and links it to ``path``."""
    kept = store / f"{content[:32]}.npy"
    if not _holds(kept, content):
        part = store / f"{path.parent.name}.{path.name}"
        part.unlink(missing_ok=True)
        with named_errors(part):
            np.save(part, array)
        part.chmod(0o644)
        os.replace(part, kept)
    if path.is_symlink() or not path.exists() or not path.samefile(kept):
        path.unlink(missing_ok=True)
        try:
            os.link(kept, path)
        except OSError:  # a file system without links
            with named_errors(path):
                np.save(path, array)


def _holds(path: Path, content: str) -> bool:
    """Returns whether a file belongs to this user and holds the array with that digest."""
    if not path.exists() or not is_own(path):
        return False
    try:
        return digest_of(np.load(path, mmap_mode="r", allow_pickle=False)) == content
    except (OSError, ValueError, EOFError):
        return False
