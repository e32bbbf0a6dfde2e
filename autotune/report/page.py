"""The page of recorded sweeps: HTML with its style, its data and the script that draws, and nothing from elsewhere.

Records are data from anywhere. Jinja escapes each text, data are JSON that no browser runs, and the policy of the page
lets it run two scripts by their digests, and load nothing.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from ..core.definition import Kernel
from ..core.errors import UsageError
from ..records.record import SweepRecord
from ..system.installation import VERSION, install_with
from . import compared, many, one
from .blocks import Block, figures

HERE = Path(__file__).parent


def page(sweeps: Sequence[SweepRecord], kernels: Mapping[str, Kernel[Any]] | None = None) -> str:
    """Returns the page of one sweep in full, or of many beside one another.

    ``kernels``: definitions that are not installed, by name.

    Raises:
        UsageError: without plotly.
    """
    drawing = _plotly()  # before anything is read
    if len(sweeps) == 1:
        return _rendered(sweeps[0].title, one.blocks(sweeps[0]), drawing)
    return _rendered(many.title(sweeps), many.blocks(sweeps, kernels or {}), drawing)


def comparison(before: Sequence[SweepRecord], after: Sequence[SweepRecord]) -> str:
    """Returns the page of what differs between two sets of records.

    Raises:
        UsageError: without plotly, or when they share no problem of the same kernel and device.
    """
    drawing = _plotly()
    found = compared.blocks(before, after)
    return _rendered(compared.title(before, after), found, drawing)


def _plotly() -> str:
    try:
        return str(import_module("plotly.offline").get_plotlyjs())
    except ImportError as error:
        raise UsageError(
            f"a report's pictures need plotly, which is not installed: pip install plotly, or {install_with('report')}"
        ) from error


def _rendered(title: str, blocks: Sequence[Block], drawing: str) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    scripts = drawing, (HERE / "draw.js").read_text()
    return environment.get_template("page.html.j2").render(
        title=title,
        blocks=blocks,
        figures=figures(blocks),
        style=Markup((HERE / "page.css").read_text()),
        scripts=[Markup(script) for script in scripts],
        digests=[_digest(script) for script in scripts],
        version=VERSION,
    )


def _breakable(text: object) -> Markup:
    """Returns text, escaped, that a browser may break after a comma."""
    return Markup(str(escape(str(text))).replace(",", ",<wbr>"))


def _digest(script: str) -> str:
    """Returns what a content security policy calls an inline script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
