"""Renders values for notebooks as a small HTML table; all text is escaped."""

from collections.abc import Mapping
from html import escape


def html_table(caption: str, rows: Mapping[str, object]) -> str:
    """Returns an HTML table with one row for each name and its value."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(str(name))}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    told = f'<caption style="text-align:left"><b>{escape(caption)}</b></caption>' if caption else ""
    return f"<table>{told}{lines}</table>"


def preformatted(text: str) -> str:
    """Returns HTML that shows text as a terminal does."""
    return f"<pre>{escape(text)}</pre>"
