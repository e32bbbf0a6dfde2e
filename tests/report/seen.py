"""What a browser sees of the page that `autotune report` writes."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from autotune.cli.commands.report import report


class Page(HTMLParser):
    """What a browser sees of a page: its text, what it would load or run, and the figures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = [""]
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(html)
        self.text = "\n".join(" ".join(word.split()) for word in self.words if word.strip())
        (data,) = [script for script in self.scripts if script.startswith("[")]
        self.figures: list[dict[str, Any]] = json.loads(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "wbr":
            return
        (self.scripts if tag == "script" else self.words).append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self.words.append("")

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.words[-1] += data


def seen(out: Path, *paths: Path) -> Page:
    report(list(paths), out)
    return Page(out.read_text())
