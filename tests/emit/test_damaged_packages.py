"""A package that was changed or damaged is not answered from."""

import json
from pathlib import Path
from typing import Any

import pytest

from autotune import UsageError
from autotune.core.schema import seal
from autotune.runtime.package import Package
from autotune.runtime.wisdom import Wisdom


@pytest.mark.quick
def test_a_source_is_what_its_key_says(package: Path, tmp_path: Path) -> None:
    inside = Package("tuned", package)
    key = inside.wisdom("detect").entries[0].source_key
    assert inside.source(key).startswith("// detect[")
    path = package / "sources" / f"{key}.cu"
    path.write_text(path.read_text().replace("sum", "mum", 1))
    with pytest.raises(UsageError, match=rf"{key}\.cu is damaged: its SHA-256 does not begin with {key}; install"):
        inside.source(key)
    (tmp_path / "secret.cu").write_text("x")
    for key in ("../../secret", "", "0" * 13, "0" * 12 + "\n"):
        with pytest.raises(UsageError, match="is not a key of a source"):
            inside.source(key)


def test_wisdom_that_was_changed_is_not_answered_from(package: Path) -> None:
    """Laid out otherwise it is the same."""
    path = package / "wisdom.json"
    content, whole = json.loads(path.read_text()), Wisdom.load(path)
    path.write_text(json.dumps(content))
    assert Wisdom.load(path) == whole
    for change in (
        {"entries": [{**content["entries"][0], "regret": 0.5}, *content["entries"][1:]]},
        {"entries": content["entries"][1:]},
        {"tuner": "another"},
        {"sha256": "0" * 64},
        {"sha256": None},
    ):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(UsageError, match=r"wisdom\.json is damaged: its content does not have the sha256.*Emit"):
            Wisdom.load(path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source_key": "../../x"}, "is not a key of a source"),
        ({"config": {"BLOCK_C": []}}, "BLOCK_C is a list"),
        ({"regret": "much"}, "regret is 'much'"),
        ({"device": "a stranger"}, "names the device a stranger"),
        ({"evidence": {"median_s": -1, "verified_on": []}}, "median_s is -1"),
        ({"baked": [1]}, "baked is a list"),
        ({"more": 1}, "'more', which nothing here knows"),
    ],
)
def test_a_right_checksum_over_nonsense_is_refused(package: Path, changes: dict[str, Any], why: str) -> None:
    path = package / "wisdom.json"
    content = json.loads(path.read_text())
    content["entries"][0] |= changes
    del content["sha256"]
    path.write_text(json.dumps(seal(content)))
    with pytest.raises(UsageError, match=rf"wisdom\.json is damaged: .*{why}"):
        Wisdom.load(path)
