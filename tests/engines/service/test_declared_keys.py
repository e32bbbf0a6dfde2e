"""A key that is declared in one place is known to its file's check, to the settings and to the page at once."""

import runpy
from collections.abc import Callable
from dataclasses import make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest

from autotune import UsageError
from autotune.campaign import campaign_plan
from autotune.engines.files import array_file
from autotune.engines.service import dsim_service, f_service, x_service
from autotune.system.limits import Range
from autotune.system.setting import Setting

from ...conftest import EXAMPLE

pytestmark = pytest.mark.quick

DOCS = Path(__file__).parents[3] / "docs"
GRACE = Setting("Steps of grace.", Range(0, 9), key="grace")
F = 'sample_rate_hz = 1e6\nfrom.listen = "127.0.0.1"\nto = {channels = 64, file = "v.h5"}\n'
X = 'antennas = ["m0"]\nchannels = 8\nsample_rate_hz = 1e6\naccumulate = 4\nfrom.listen = "127.0.0.1"\nto.file = "x"\n'
DSIM = 'sample_rate_hz = 1e6\nsignals = ["noise(0.1, seed=1)"]\nto.endpoints = "127.0.0.1"\n'
FILES: dict[str, tuple[ModuleType, str, Callable[[Path], Any], str, str]] = {
    "fengine": (f_service, "FServiceSettings", f_service.f_service_settings, F, "network-files"),
    "xengine": (x_service, "XServiceSettings", x_service.x_service_settings, X, "network-files"),
    "dsim": (dsim_service, "DsimSettings", dsim_service.dsim_settings, DSIM, "network-files"),
    "campaign": (campaign_plan, "CampaignFile", campaign_plan.read_plan, f'kernel = "{EXAMPLE}"\n', "settings"),
    "array": (
        array_file,
        "ArrayAntenna",
        lambda path: array_file.read_array(path).antennas[0],
        '[[antenna]]\nfiles = "a.vdif"\n',
        "engines-arrays",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_declaration_is_all_that_a_new_key_needs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, kind, read, text, page = FILES[name]
    field = ("n_grace", Annotated[int, GRACE], 3)
    own = make_dataclass(kind, [field], bases=(getattr(module, kind),), frozen=True, kw_only=True)
    path = tmp_path / "file.toml"

    def found(more: str) -> Any:
        path.write_text(f"{text}{more}\n")
        return read(path)

    with pytest.raises(UsageError, match="grace"):
        found("grace = 5")
    monkeypatch.setattr(module, kind, own)
    monkeypatch.setattr(campaign_plan, "_plan", lambda file, results: file)
    assert (found("").n_grace, found("grace = 5").n_grace) == (3, 5)
    for wrong, why in (("grace = 10", "grace.*10.*an integer from 0 to 9"), ("grase = 5", "did you mean grace")):
        with pytest.raises(UsageError, match=f"file.toml: .*{why}") as caught:
            found(wrong)
        assert "\n" not in str(caught.value)
    renewed = runpy.run_path(str(DOCS / "figures.py"))["PAGES"][DOCS / f"{page}.md"]
    assert "| `grace` | Steps of grace. | 3; from 0 to 9 |\n" in renewed((DOCS / f"{page}.md").read_text())
