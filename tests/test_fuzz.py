"""A sample of `python -m tests.fuzz`: damaged records, damaged packages and senseless command lines."""

from pathlib import Path
from random import Random

from .fuzz.__main__ import report
from .fuzz.command_lines import CommandLines
from .fuzz.records import Records, make, open_bench
from .fuzz.wisdoms import Wisdoms


def test_damaged_records_cost_what_is_damaged(tmp_path: Path) -> None:
    with open_bench() as bench:
        records = Records(tmp_path, 1, bench)
        assert report("damaged records", records.run(100)) == 0
    assert report("in a process of its own", records.fresh(2)) == 0


def test_damaged_packages_answer_as_whole_ones_or_not_at_all(tmp_path: Path) -> None:
    wisdoms = Wisdoms(tmp_path, Random(1))
    assert report("damaged wisdoms", wisdoms.run(35)) == 0
    assert report("damaged sources", wisdoms.sources(10)) == 0


def test_senseless_command_lines_end_with_a_message(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "est" / "lines"
    with open_bench() as bench:
        make(folder, bench)
    assert report("command lines", CommandLines(folder, Random(1)).run(80)) == 0
