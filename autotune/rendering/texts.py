"""The files from which a kernel's sources are made: its definition, its template, and the files that this names."""

import re
from hashlib import sha256
from pathlib import Path

from ..core.definition import AnyKernel
from ..core.library import library_path

NAMED = re.compile(r"[\"'<]([\w./-]+)[\"'>]")  # text in a template that may name a file


def with_named_files(path: Path, folder: Path, name: str) -> dict[str, str]:
    """Returns name -> text of the file ``path`` and of all files in ``folder`` that it names, also indirectly."""
    found, unread = {name: path.read_text()}, [path]
    while unread:
        for named in NAMED.findall(unread.pop().read_text()):
            inside = (folder / named).resolve()
            if named not in found and inside.is_file() and inside.is_relative_to(folder.resolve()):
                found[named] = inside.read_text()
                unread.append(inside)
    return found


def texts_digest(kernel: AnyKernel) -> str:
    """Returns a digest of the definition, the template and the files that it names; their paths do not matter."""
    path = kernel.template
    texts = [(each.name, each.read_text()) for each in kernel.source_paths]
    for folder in dict.fromkeys((path.parent, library_path())):
        texts += sorted(with_named_files(path, folder, path.name).items())
    return sha256(repr(texts).encode()).hexdigest()
