"""What notebooks show of a value: a small table, in which all text is shown letter by letter."""

from collections.abc import Mapping
from html import escape


def html_table(caption: str, rows: Mapping[str, object]) -> str:
    """Returns HTML with a line for each name and what is said of it."""
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
