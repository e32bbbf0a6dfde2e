"""Renders pages of recorded sweeps: HTML that contains its style, its data and its scripts, and loads nothing.

Records are untrusted data. Jinja escapes every text, data is JSON that browsers do not execute, and the page's content
security policy only allows its own scripts, by their digests, and no loading.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from ..core.definition import AnyKernel
from ..core.errors import UsageError
from ..core.files import opened
from ..records.record import SweepRecord
from ..system.installation import VERSION, install_with
from . import compared, many, one
from .blocks import PageBlock, figures

HERE = Path(__file__).parent
MARK, MARK_WITHIN = b'<meta name="generator" content="autotune">', 200  # the first bytes of a page have it


def page(sweeps: Sequence[SweepRecord], kernels: Mapping[str, AnyKernel] | None = None, *, renews: bool = False) -> str:
    """Returns the page of one sweep in full, or an overview of many.

    ``kernels``: name -> definition for kernels that are not installed. ``renews``: the page reloads itself every few
    seconds.

    Raises:
        UsageError: without plotly.
    """
    drawing = _plotly()  # fail before records are read
    if len(sweeps) == 1:
        return _page_text(sweeps[0].title, one.sweep_blocks(sweeps[0]), drawing, renews)
    return _page_text(many.overview_title(sweeps), many.overview_blocks(sweeps, kernels or {}), drawing, renews)


def comparison(before: Sequence[SweepRecord], after: Sequence[SweepRecord], *, renews: bool = False) -> str:
    """Returns the page that compares two sets of records; ``renews`` as for ``page``.

    Raises:
        UsageError: without plotly, or when they share no problem of the same kernel and device.
    """
    drawing = _plotly()
    found = compared.comparison_blocks(before, after)
    return _page_text(compared.comparison_title(before, after), found, drawing, renews)


def _plotly() -> str:
    try:
        return str(import_module("plotly.offline").get_plotlyjs())
    except ImportError as error:
        raise UsageError(needs_plotly()) from error


def needs_plotly() -> str:
    """Returns the error message for a missing plotly."""
    return f"a report's pictures need plotly, which is not installed: pip install plotly, or {install_with('report')}"


def is_page(path: Path) -> bool:
    """Returns whether a file is a report."""
    try:
        with opened(path, "rb") as file:
            return MARK in file.read(MARK_WITHIN)
    except OSError:
        return False


def _page_text(title: str, blocks: Sequence[PageBlock], drawing: str, renews: bool) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    scripts = [drawing, *((HERE / name).read_text() for name in ("draw.js", *["renew.js"] * renews))]
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
    return Markup(str(escape(str(text))).replace(",", ",<wbr>"))


def _digest(script: str) -> str:
    """Returns the hash by which a content security policy allows an inline script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
