"""Writes the definition of a called kernel: readable Python, its template, and its arrays as ``.npy``.

The folder's name contains a digest of its content, so the same call finds the same definition, and its record. An
existing file is kept only if it belongs to this user and has the right content; otherwise it is written anew.
"""

import json
import os
import re
import shutil
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np

from ..core.errors import UsageError
from ..core.files import write_whole
from ..core.kept import is_own
from .answers import stored_answer
from .array_memory import digest_of
from .formula_tables import table_of
from .formulas import Formulas
from .outputs import Outputs
from .text import definition_text

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MOST_OF_NAME = 24  # characters of a file's name
CACHED = "__pycache__"  # bytecode of a definition, which Python would run in place of the source


def write_definition(formulas: Formulas, outputs: Outputs, results: Path) -> Path:
    """Writes the definition below ``results``, unless it exists with the right content; returns its path.

    Raises:
        UsageError: if no config is allowed, the files cannot be written, or another user could change them.
    """
    call = formulas.call
    table = table_of(formulas)
    sources = table.sources if table is not None else ()
    template = formulas.template(is_one=not sources)
    arrays = {each.name: (each.memory.digest, each.memory.stored) for each in call.arrays}
    answers = {name: stored_answer(answer) for name, answer in outputs.compared.items()}
    arrays |= {f"answer.{name}": (digest_of(answer), answer) for name, answer in answers.items()}
    contents = [(name, content) for name, (content, _) in arrays.items()]
    tolerances = sorted((name, answer.tolerance) for name, answer in outputs.compared.items())
    instance = (formulas.function,) if formulas.function else ()
    identity = contents, table, outputs.kinds, tolerances, outputs.judged, template, *instance
    digest = sha256(str(identity).encode()).hexdigest()[:12]
    text = definition_text(formulas, outputs, table, f"{_short_name(call.source.file)}-{digest}")
    whole = sha256(json.dumps([text, template, contents, sources]).encode()).hexdigest()[:12]
    root = results / "definitions"
    folder, store = root / f"{call.name}-{whole}", root / "arrays"
    files = {f"{call.name}.cu.j2": template.encode(), f"{call.name}.py": text.encode()}
    if sources:
        files["sources.json"] = json.dumps(sources).encode()
    try:
        for each in (root, store, folder):
            _make(each)
        _write(folder, files, store, arrays)
    except OSError as error:
        raise UsageError(f"{folder}: the definition cannot be written: {error.strerror}") from error
    return folder / f"{call.name}.py"


def _short_name(file: str) -> str:
    """Returns the part of a problem's ``data`` that tells two sources of one kernel apart, for people."""
    return re.sub(r"\W+", "_", Path(file).stem, flags=re.ASCII)[:MOST_OF_NAME].strip("_") or "source"


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


def _write(folder: Path, files: Mapping[str, bytes], store: Path, arrays: Mapping[str, tuple[str, np.ndarray]]) -> None:
    """Writes missing and changed files, and removes all others from the folder."""
    for path_found in folder.iterdir():
        if path_found.name in files or path_found.name.removesuffix(".npy") in arrays:
            continue
        if path_found.is_dir() and not path_found.is_symlink():
            shutil.rmtree(path_found)
        else:
            path_found.unlink(missing_ok=True)
    for name, (content, array) in arrays.items():
        _store(store, content, array, folder / f"{name}.npy")
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
        np.save(part, array)
        part.chmod(0o644)
        os.replace(part, kept)
    if path.is_symlink() or not path.exists() or not path.samefile(kept):
        path.unlink(missing_ok=True)
        try:
            os.link(kept, path)
        except OSError:  # a file system without links
            np.save(path, array)


def _holds(path: Path, content: str) -> bool:
    """Returns whether a file belongs to this user and holds the array with that digest."""
    if not path.exists() or not is_own(path):
        return False
    try:
        return digest_of(np.load(path, mmap_mode="r", allow_pickle=False)) == content
    except (OSError, ValueError, EOFError):
        return False
