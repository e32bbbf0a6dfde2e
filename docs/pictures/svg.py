"""Writes SVG as text: a card of its own colour, so that a picture reads the same on a light and on a dark page."""

import textwrap
from collections.abc import Iterable
from html import escape

INK, MUTED, LINE, PAPER = "#1f2328", "#57606a", "#8c959f", "#ffffff"
BLUE, GREEN, ORANGE, PURPLE, RED, GREY, TEAL = (
    "#cfe4ff",
    "#c6efce",
    "#ffe0b8",
    "#e6d8fb",
    "#ffd0cf",
    "#eaeef2",
    "#c5eeee",
)
STYLE = (
    "text{font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:14px;fill:#1f2328}"
    ".title{font-size:17px;font-weight:600}.small{font-size:12px}.muted{fill:#57606a}.bold{font-weight:600}"
    ".code{font-family:ui-monospace,'DejaVu Sans Mono',Consolas,monospace;font-size:12.5px}.white{fill:#ffffff}"
)


class Picture:
    """A picture of ``width`` by ``height`` pixels, drawn from back to front."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{MUTED}"/></marker></defs>',
        ]
        self.box(0.5, 0.5, width - 1, height - 1, PAPER, radius=8, edge="#d0d7de")

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, radius: float = 4, edge: str = LINE
    ) -> None:
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}" fill="{fill}" '
            f'stroke="{edge}"/>'
        )

    def text(self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> None:
        """``kind``: classes of STYLE; ``anchor``: start, middle or end."""
        classes = f' class="{kind}"' if kind else ""
        where = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{classes}{where}>{escape(text, quote=False)}</text>')

    def lines(self, x: float, y: float, lines: Iterable[str], kind: str = "", *, step: float = 18) -> None:
        """Lines of text, one below the other."""
        for i, line in enumerate(lines):
            self.text(x, y + i * step, line, kind)

    def paragraph(self, x: float, y: float, text: str, n_characters: int, kind: str = "small") -> None:
        """Text in lines of at most so many characters."""
        self.lines(x, y, textwrap.wrap(text, n_characters), kind, step=17)

    def labelled(
        self, x: float, y: float, width: float, height: float, fill: str, lines: str | tuple[str, ...], kind: str = ""
    ) -> None:
        """A box with text in its middle; of several lines the first is bold."""
        self.box(x, y, width, height, fill)
        lines = (lines,) if isinstance(lines, str) else lines
        first = y + height / 2 + 5 - 8.5 * (len(lines) - 1)
        for i, line in enumerate(lines):
            bold = f"{kind} bold".strip() if i == 0 and len(lines) > 1 else f"{kind} small".strip() if i else kind
            self.text(x + width / 2, first + 17 * i, line, bold, anchor="middle")

    def line(self, *points: tuple[float, float], dashed: bool = False, arrow: bool = False, both: bool = False) -> None:
        path = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        extra = (' stroke-dasharray="4 4"' if dashed else "") + (' marker-end="url(#tip)"' if arrow or both else "")
        extra += ' marker-start="url(#tip)"' if both else ""
        self._parts.append(f'<path d="{path}" fill="none" stroke="{MUTED}" stroke-width="1.5"{extra}/>')

    def dots(self, points: Iterable[tuple[float, float]], colour: str, size: float = 5) -> None:
        """Round dots of one colour."""
        path = "".join(f"M{_n(x)} {_n(y)}h0" for x, y in points)
        self._parts.append(f'<path d="{path}" stroke="{colour}" stroke-width="{_n(size)}" stroke-linecap="round"/>')

    def bars(self, bars: Iterable[tuple[float, float, float]], colour: str, height: float) -> None:
        """Level bars of one colour: left end, middle, length."""
        path = "".join(f"M{_n(x)} {_n(y)}h{_n(length)}" for x, y, length in bars)
        self._parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{_n(height)}"/>')

    def arrow(self, *points: tuple[float, float], dashed: bool = False) -> None:
        self.line(*points, dashed=dashed, arrow=True)

    def svg(self) -> str:
        return "\n".join([*self._parts, "</svg>", ""])


def _n(value: float) -> str:
    """A coordinate to a tenth of a pixel, without zeros behind it."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
