"""Writes the definition of a called kernel: Python that a person can read, its template, and its arrays as ``.npy``.

The folder's name has a digest of all that is in it, so the same call finds the same definition, and its record.
"""

import json
import os
from hashlib import sha256
from pathlib import Path

import numpy as np

from ..core.errors import UsageError
from ..core.files import write_whole
from .call import UNROLL, Call, digest_of
from .outputs import Outputs
from .tables import table_of
from .text import definition_text


def write_definition(call: Call, outputs: Outputs, results: Path) -> Path:
    """Writes the definition below ``results``, unless it is there; returns its path.

    Raises:
        UsageError: when no config is allowed, or it cannot be written.
    """
    table = table_of(call)
    sources = table.sources if table is not None else ()
    unroll = [name for name in call.space if name.startswith(UNROLL)]
    template = call.source.template(call.name, unroll, is_one=not sources)
    given = [each for each in (*call.arguments, *call.constants) if each.is_array]
    arrays = {each.name: (each.digest, each.value) for each in given}
    arrays |= {f"answer.{name}": (digest_of(answer), answer) for name, answer in outputs.answers.items()}
    contents = [(name, content) for name, (content, _) in arrays.items()]
    said = contents, table, outputs.kinds, outputs.tolerance, outputs.judged, template
    digest = sha256(str(said).encode()).hexdigest()[:12]
    text = definition_text(call, outputs, table, digest)
    whole = sha256(json.dumps([text, template, contents, sources]).encode()).hexdigest()[:12]
    folder = results / "definitions" / f"{call.name}-{whole}"
    path = folder / f"{call.name}.py"
    if path.is_file():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (content, array) in arrays.items():
            _store(results / "definitions" / "arrays", content, array, folder / f"{name}.npy")
        write_whole(folder / f"{call.name}.cu.j2", template.encode())
        if sources:
            write_whole(folder / "sources.json", json.dumps(sources).encode())
        write_whole(path, text.encode())
    except OSError as error:
        raise UsageError(f"{folder}: the definition cannot be written: {error.strerror}") from error
    return path


def _store(store: Path, content: str, array: np.ndarray, path: Path) -> None:
    """Saves an array once for all definitions that have it, and links it to ``path``."""
    store.mkdir(parents=True, exist_ok=True)
    kept = store / f"{content[:32]}.npy"
    if not kept.is_file():
        part = store / f"{path.parent.name}.{path.name}"
        np.save(part, array)
        part.rename(kept)
    try:
        os.link(kept, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        np.save(path, array)
