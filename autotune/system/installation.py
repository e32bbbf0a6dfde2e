"""The command that installs an extra from this installation's source, since the index has another project's name."""

import json
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

VERSION = "0.2.0"
DISTRIBUTION = "autotune-dsp"  # the name in pyproject.toml; `autotune` on the public index is another project


def install_with(extra: str) -> str:
    """Returns the command that installs autotune with ``extra``, from its checkout or wheel if this still exists."""
    source = _source()
    if source is None:
        return f"pip install {shlex.quote(f'.[{extra}]')} in autotune's checkout"
    return f"pip install {shlex.quote(f'{source}[{extra}]')}"


def _source() -> Path | None:
    """Returns the folder or file from which pip installed autotune (PEP 610), or None."""
    from importlib.metadata import PackageNotFoundError, distribution  # here: every process imports VERSION

    try:
        text = distribution(DISTRIBUTION).read_text("direct_url.json")
        parts = urlsplit(json.loads(text or "{}").get("url", ""))
    except (PackageNotFoundError, ValueError):  # autotune runs from sources, or the file is damaged
        return None
    path = Path(unquote(parts.path))
    return path if parts.scheme == "file" and path.is_absolute() and path.exists() else None
