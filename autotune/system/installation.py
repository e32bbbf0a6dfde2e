"""How to add an extra to this installation: from where it came, since its name on an index would be somebody else's."""

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

VERSION = "0.1.0"
DISTRIBUTION = "autotune-dsp"  # as pyproject.toml names it; `autotune` on the public index is another project


def install_with(extra: str) -> str:
    """The command that installs autotune with ``extra``: from its checkout or its wheel, where that is still there."""
    source = _source()
    if source is None:
        return f"pip install {shlex.quote(f'.[{extra}]')} in autotune's checkout"
    return f"pip install {shlex.quote(f'{source}[{extra}]')}"


def _source() -> Path | None:
    """The folder or file that pip installed it from (PEP 610)."""
    try:
        text = distribution(DISTRIBUTION).read_text("direct_url.json")
        parts = urlsplit(json.loads(text or "{}").get("url", ""))
    except (PackageNotFoundError, ValueError):  # it runs from sources, or the file is damaged
        return None
    path = Path(url2pathname(parts.path))
    return path if parts.scheme == "file" and path.is_absolute() and path.exists() else None
