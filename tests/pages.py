"""Pages as a reader works through them: what they show as files, what they type, what they run, and what these print.

A page is a list of steps. A block of commands is indented and has lines that begin with ``autotune`` or ``python``; a
block of Python is fenced as such. A block that is fenced as ``text`` is what the step before it prints: white space
counts for nothing,
``...`` stands for anything, and so does what a search finds by chance: configs, their errors, speed-ups, and amounts
with a unit of time. A block that is fenced as ``diff`` edits the file that its first line names.

A comment before a block says more of it: ``<!-- not run: needs a GPU -->`` leaves it out, ``<!-- slow -->`` runs it
where tests are thorough, ``<!-- file: x.toml -->`` makes it a file, ``<!-- run with: --trials 2 -->`` adds options, and
``<!-- exit 1 -->`` says how it ends. Several of these are separated by semicolons.
"""

import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import program

from .commands import autotune

MARK = re.compile(r"(not run|slow|file|run with|exit)(?:: | |$)(.*)")
BLOCK = re.compile(
    r"(?:^<!-- (?P<marks>.+) -->\n\n?)?"
    r"(?:^```(?P<kind>\w+)\n(?P<fenced>(?:(?!```).*\n)*)```$|(?<=\n\n)(?P<indented>(?:    .*\n|\n(?=    ))+))",
    re.MULTILINE,
)
COMMAND = re.compile(r"^(?:.*&& \S*/bin/)?(?:autotune (.+)|(python \S+\.py.*))$", re.MULTILINE)
BESIDE = re.compile(r"\s{3,}\S.*|\s+# .*")  # what is said beside a command
CONFIG = re.compile(r"\b[A-Z][A-Z_]*=\w+(?:,[A-Z][A-Z_]*=\w+)*(?:,?\.\.\.)?")
CHANCE = re.compile(
    r"\b\d[\d.]* (?:ns|us|ms|s|min|h)\b|no better than the default|\b[\d.]+e-\d+|(?:no difference found: )?"
    r"\b[\d.]+ x the default(?:,? \(?[\d.]+ to [\d.]+ from the 95 % intervals\)?)?"
)
MEASURING = ("sweep", "tune", "campaign", "verify")
NUMBER = re.compile(r"\d[\d.e-]*")


@dataclass(frozen=True)
class Step:
    """One block of a page. ``kind``: commands, python, diff, text, or file; ``marks``: what a comment says of it."""

    kind: str
    text: str
    marks: Mapping[str, str]
    line: int

    def commands(self) -> list[list[str]]:
        """The words of each command, after ``autotune``; a program of Python begins with ``python``."""
        lines = [own or program for own, program in COMMAND.findall(re.sub(r"\\\n\s*", "", self.text))]
        added = shlex.split(self.marks.get("run with", ""))
        words = [shlex.split(BESIDE.sub("", line)) for line in lines]
        return [[*each, *(added if each[0] in MEASURING else ())] for each in words]


def steps(page: str) -> list[Step]:
    """The steps of a page in their order; blocks that are none of them are left out."""
    found = []
    for block in BLOCK.finditer(page):
        marks = dict(MARK.fullmatch(mark).groups() for mark in (block["marks"] or "").split("; ") if mark)
        text = block["fenced"] or re.sub("^    ", "", block["indented"] or "", flags=re.MULTILINE)
        kind = "file" if "file" in marks else block["kind"] or ("commands" if COMMAND.search(text) else "")
        if kind in ("commands", "python", "diff", "text", "file"):
            found.append(Step(kind, text, marks, page.count("\n", 0, block.start()) + 1))
    return found


@dataclass
class Reader:
    """One who works through a page in the current folder. ``thorough``: every config, and slow blocks too."""

    capfd: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    thorough: bool
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    printed: str = ""
    is_shortened: bool = False  # what was printed is of fewer configs than the page has

    def follows(self, page: str) -> None:
        """Does what a page says, step by step, and compares what it shows."""
        left_out = False
        for step in steps(page):
            if step.kind == "text":
                where = f"line {step.line} shows\n{step.text}\nand this was printed\n{self.printed}"
                assert left_out or prints(step.text, self.printed, numbers=not self.is_shortened), where
                continue
            left_out = "not run" in step.marks or ("slow" in step.marks and not self.thorough)
            if not left_out:
                self.takes(step)

    def takes(self, step: Step) -> None:
        """Does what one block says, and keeps what it printed."""
        self.printed, self.is_shortened = "", False
        if step.kind == "file":
            path = Path(step.marks["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
        elif step.kind == "diff":
            edit(Path(), step.text)
        elif step.kind == "python":
            exec(compile(step.text, f"line {step.line}", "exec"), self.names)
            self.printed = "".join(self.capfd.readouterr())
        for words in step.commands() if step.kind == "commands" else ():
            status, printed = self.types(self.shortened(self.of_this_machine(words)))
            assert status == int(step.marks.get("exit", 0)), f"line {step.line}: {words} ended with {status}\n{printed}"
            self.printed += printed

    def of_this_machine(self, words: list[str]) -> list[str]:
        """A command as it is typed where there may be no GPU: kernels that come along are measured by a formula."""
        if words[0] not in MEASURING or {"--device", "--compile-for"} & {*words}:
            return words
        is_file = any(word.endswith((".py", ".cu")) for word in words)
        return [*words, "--device", "host" if is_file or words[0] == "verify" else "simulated"]

    def shortened(self, words: list[str]) -> list[str]:
        """A command as it is typed, unless tests are thorough, where there is little time."""
        fewer = [part for word in words for part in (("--sample", "1") if word == "--all" else (word,))]
        if words[0] in ("sweep", "tune"):
            fewer += ["--trials", "2"]
        if self.thorough or fewer == words:
            return words
        self.is_shortened = True
        return fewer

    def types(self, words: list[str]) -> tuple[int, str]:
        """Exit status and what is printed; in this process where no definition in a file is read."""
        *words, to = words if words[-2:-1] == [">"] else [*words, ""]
        words = [word for word in words if word != ">"]
        if words[0] == "python":
            ran = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
            return ran.returncode, ran.stdout + ran.stderr
        if words[0] in MEASURING or any(word.endswith(".py") for word in words):
            ran = autotune(*words)
            return ran.returncode, ran.stdout + ran.stderr
        self.monkeypatch.setattr(sys, "argv", ["autotune", *words])
        with pytest.raises(SystemExit) as end:
            program.main()
        logging.disable(logging.NOTSET)  # as it was before `lookup`
        printed, told = self.capfd.readouterr()
        if to:
            Path(to).write_text(printed)
        return int(end.value.code or 0), printed + told


def edit(folder: Path, block: str) -> None:
    """Does to a file what a diff says, whose first line is its name, and whose parts are separated by ``...``."""
    name, lines = block.split("\n", 1)
    text = (folder / name).read_text()
    for part in lines.split("...\n"):
        old, new = (re.sub(f"^[{other}].*\n", "", part, flags=re.MULTILINE) for other in ("+", "-"))
        old, new = (re.sub("^.", "", each, flags=re.MULTILINE) for each in (old, new))
        assert text.count(old) == 1, f"{name} does not have once: {old}"
        text = text.replace(old, new)
    (folder / name).write_text(text)


def prints(shown: str, printed: str, numbers: bool = True) -> bool:
    """Whether something printed is what a page shows of it; without ``numbers`` those count for nothing, either."""
    parts = [re.escape(part.strip()) for part in re.split(r"\s*\.\.\.\s*", _without_chance(shown, numbers))]
    return re.search(".*?".join(parts), _without_chance(printed, numbers)) is not None


def _without_chance(text: str, numbers: bool) -> str:
    text = CHANCE.sub("<time>", CONFIG.sub("<config>", text))
    return " ".join((text if numbers else NUMBER.sub("0", text)).split())
