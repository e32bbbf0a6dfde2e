"""Makes report.png, the top of the report of results/: `python docs/pictures/report_png.py` (needs a Chromium).

Fonts differ from machine to machine, so no test compares the file with what this makes.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from autotune.records.folder import all_sweeps
from autotune.records.record import SweepRecord
from autotune.report.page import page

HERE = Path(__file__).parent
RECORDS = HERE.parents[1] / "results"
SIZE = 1000, 1400
BROWSERS = "chromium", "chromium-browser", "google-chrome"


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"needs one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "report.html").write_text(page([SweepRecord.of(each) for each in all_sweeps([RECORDS])]))
        words = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000"),
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={folder / 'report.png'}",
        ]
        subprocess.run([browser, *words, (folder / "report.html").as_uri()], check=True, timeout=120)
        shot = Image.open(folder / "report.png").convert("RGB")
        shot.save(HERE / "report.png", optimize=True)


if __name__ == "__main__":
    main()
