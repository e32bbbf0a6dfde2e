"""What may become of a file: bytes, lines and JSON values that are changed, lost, doubled or out of all bounds."""

import csv
import io
import json
from collections.abc import Callable
from random import Random
from typing import Any

from autotune.core.schema import SEAL, seal
from autotune.records.packed import _seed, _sum

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, -(10**30), 0.5, -0.0, 1e-320, 1e300, 1e999, float("nan")),
    *("", "x", "../../../ESC", "/etc/passwd", ".", "..", "a/b", "nan", "\x00", "\x1b]0;t\x07", "\x1b[2J", "\udcff"),
    *("\u202e", "\n", '"""\nopen("ESC", "w")\n"""', "{{ 7 * 7 }}", "; rm -rf ESC", "x" * 5000, "ESC.py", "[red]x[/]"),
    *([], {}, [None], [[]], {"": 1}, {"../ESC": 1}, [1, "a", None], {"a": {"b": []}}),
)


def damaged(data: bytes, rng: Random) -> bytes:
    """``data`` after one to three mutations, each at another place.

    One that takes a checksum away is the only one: without it a value that changed is as an older version wrote it.
    """
    before = data
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        changed = rng.choice(KINDS)(data, rng)
        if n_seals(changed) < n_seals(before):
            return changed if data == before else data
        data = changed
    return data if data != before else before + b"]"


def n_seals(data: bytes) -> int:
    """How many checksums it has."""
    return data.count(b'"sha256"') + data.count(b'"sum"')


def forged(data: bytes, rng: Random) -> bytes:
    """The JSON or the packed table with one to three values changed, and checksums that fit: as a liar writes it."""
    if not data.startswith(b"# "):
        content = {name: value for name, value in json.loads(data).items() if name != SEAL}
        for _ in range(rng.choice((1, 1, 2, 3))):
            content = _changed(content, rng)
        return json.dumps(seal(content) if isinstance(content, dict) else content, indent=2).encode() + b"\n"
    first, _, rest = data.decode().partition("\n")
    names, *rows = ([*row[:-1]] for row in csv.reader(io.StringIO(rest)))
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.randrange(6)
        if kind == 0:
            first = "# " + json.dumps(_changed(json.loads(first[2:]), rng))
        elif kind == 1:
            names[rng.randrange(len(names))] = rng.choice((*names, "joules", "launches", "metrics", _cell("", rng)))
        elif kind == 2:
            rows.insert(rng.randrange(len(rows) + 1), rng.choice([[*row] for row in rows]))
        else:
            row, at = rng.choice(rows), rng.randrange(len(names))
            row[at] = rng.choice((rng.choice(rows)[at], rng.choice(row), _cell(row[at], rng)))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*names, "sum"])
    writer.writerows([*row, _sum(_seed(first, names), row)] for row in rows)
    return f"{first}\n{out.getvalue()}".encode(errors="surrogatepass")


def _cell(cell: str, rng: Random) -> str:
    """Another cell: strange, or of digits that no figure has."""
    value = rng.choice(STRANGE)
    odd = ("", "=", "=x", "x", "1x2x3x4", "x:1:1", "a:b:c:d:e:f:g", '"', '"\\ud800"', "[1]", "-", "1e999", "9" * 5000)
    return rng.choice((*odd, f"-{cell}", f"{cell}0", cell[:-1], value if isinstance(value, str) else json.dumps(value)))


def _value(data: bytes, rng: Random) -> bytes:
    """One value in the JSON of a line or of the whole."""
    lines = data.split(b"\n")
    at = [i for i, line in enumerate(lines) if line.startswith(b"{") and line.endswith(b"}")]
    try:
        if at:
            i = rng.choice(at)
            lines[i] = json.dumps(_changed(json.loads(lines[i]), rng)).encode()
            return b"\n".join(lines)
        return json.dumps(_changed(json.loads(data), rng), indent=2).encode() + b"\n"
    except (ValueError, RecursionError):
        return _bytes(data, rng)


def _changed(content: Any, rng: Random) -> Any:
    """``content`` with one member or element changed, gone, doubled or renamed, however deep it lies."""
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, each in members:
            places.append((value, name))
            collect(each)

    collect(content)
    if not places:
        return rng.choice(STRANGE)
    inside, name = rng.choice(places)
    kind = rng.randrange(6)
    if kind == 0:
        del inside[name]
    elif kind == 1 and isinstance(inside, list):
        inside.insert(name, inside[name])
    elif kind == 2 and isinstance(inside, dict):
        inside[str(rng.choice(STRANGE))[:50]] = inside.pop(name)
    elif kind == 3 and isinstance(inside[name], (int, float)):
        inside[name] = rng.choice((-inside[name], inside[name] + 1, inside[name] * 10, str(inside[name])))
    else:
        inside[name] = rng.choice(STRANGE)
    return content


def _bytes(data: bytes, rng: Random) -> bytes:
    """A few bytes changed, gone or added."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 10))):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(3)
        if kind == 0 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif kind == 1:
            del changed[at : at + rng.choice((1, 1, 5, 50))]
        else:
            changed[at:at] = rng.choice((b"\x00", b"\xff", b"{", b"]", b'"', b"9", b"\n", b"\r", b"-", b"1e999"))
    return bytes(changed)


def _digit(data: bytes, rng: Random) -> bytes:
    """One digit for another: what no type tells."""
    at = [i for i, byte in enumerate(data) if 48 <= byte < 58]
    if not at:
        return _bytes(data, rng)
    changed = bytearray(data)
    changed[rng.choice(at)] = rng.choice(b"0123456789")
    return bytes(changed)


def _line(data: bytes, rng: Random) -> bytes:
    """A line gone, doubled, moved, cut or with another in its middle."""
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[other])
    elif kind == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3:
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    else:
        lines[at] += lines[other]
    return b"\n".join(lines)


def _cut(data: bytes, rng: Random) -> bytes:
    """Its end is gone, or all of it."""
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.8 else b""


def _rubbish(data: bytes, rng: Random) -> bytes:
    """Something else altogether."""
    return rng.choice((b"[" * 200_000, b"null", b"[]", b"{}", b'"x"', b"9" * 5000, rng.randbytes(300), b"{}\n" * 50))


KINDS: tuple[Callable[[bytes, Random], bytes], ...] = (*(_value,) * 5, _bytes, _bytes, _digit, _line, _cut, _rubbish)
