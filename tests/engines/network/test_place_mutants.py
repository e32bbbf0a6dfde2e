"""Faults that are planted in place.c are found by its comparison with the model: of conditions, returns, counters."""

import ctypes
import os
import re
from random import Random
from typing import Any

import pytest

from autotune.devices.host.toolchain import find_compiler, run_compiler
from autotune.engines.network.placing import SOURCE, place_library

from .drawn_heaps import drawn
from .place_model import compare

N_STREAMS, N_HEAPS = 400, 300  # at most, for each fault; most are found in the first stream

REPLACED = """
clock_ns >= 0 | clock_ns > 0
p->newest >= 0 ? p->newest * p->heap_samples : p->near | p->newest >= 0 ? p->newest * p->heap_samples : 0
p->newest >= 0 ? p->newest * p->heap_samples : p->near | p->newest >= 0 ? p->newest : p->near
(time - known) & TIME_MASK | time - known
apart > TIME_MASK / 2 | apart >= TIME_MASK / 2
apart > TIME_MASK / 2 | apart > TIME_MASK / 2 + 1
apart -= TIME_MASK + 1 | apart -= TIME_MASK
known + apart < 0 ? | known + apart <= 0 ?
known + apart < 0 ? | 0 ?
most_ahead = p->ahead_chunks * p->chunk_heaps | most_ahead = p->ahead_chunks
p->newest < 0 || | p->newest <= 0 ||
p->newest < 0 || |
ahead > most_ahead | ahead >= most_ahead
chunks_behind >= p->kept_chunks | chunks_behind > p->kept_chunks
chunks_behind >= p->kept_chunks | 0
|| rest != offset) { | ) {
&& rest == p->far_rest |
p->far_rest = rest; |
|| (p->newest < 0 && !has_offset(p, rest)) |
(p->newest < 0 && !has_offset(p, rest)) | !has_offset(p, rest)
&offset, rest, 0 | &offset, 0, 0
|| offset == rest; | ;
rest != offset || ahead < 0 | ahead < 0
offset >= 0 && rest != offset | rest != offset
offset >= 0 && rest != offset | 0
n > p->far ? n - p->far : p->far - n | n - p->far
n > p->far ? n - p->far : p->far - n | p->far - n
apart <= most_ahead && | apart < most_ahead &&
p->n_far + 1 : 1 | p->n_far + 1 : 0
p->n_far + 1 : 1 | p->n_far + 1 : p->n_far
p->far = n; |
p->far_sender = sender; |
p->far_sender = -1; |
p->n_far < p->confirm | p->n_far <= p->confirm
        if (p->newest >= 0) { | if (p->newest > 0) {
        if (p->newest >= 0) { | {
p->known_ns < p->quiet_ns | p->known_ns <= p->quiet_ns
now - p->known_ns < p->quiet_ns | 0
|| ahead < 0 || | ||
ahead > p->most_jump | ahead >= p->most_jump
ahead > p->most_jump | 0
p->jumped_to = n * p->heap_samples + rest; | p->jumped_to = n * p->heap_samples;
p->jumped_to = n * p->heap_samples + rest; |
p->n_far = 0; |
if (n > p->newest) |
if (n > p->newest) | if (0)
row = chunk % p->kept_chunks | row = 0
p->seen + row * n_flags | p->seen
p->seen_of[row] != chunk | 0
memset(seen, 0, (size_t)n_flags); |
memset(seen, 0, (size_t)n_flags); | memset(seen, 0, (size_t)n_flags - 1);
p->seen_of[row] = chunk; |
if (seen[flag]) | if (0)
seen[flag] = 1; |
items[STREAM_CONTROL] == STREAM_STOP | items[STREAM_CONTROL] >= STREAM_STOP
items[STREAM_CONTROL] == STREAM_STOP | items[STREAM_CONTROL] >= 0
>= p->n_enders && p->newest | > p->n_enders && p->newest
p->senders[s].number < number ? | 1 ?
p->senders[s].number < number ? | p->senders[s].number <= number ?
number >= 0 && p->senders[own].misnumbered == 0 | number >= 0
number >= 0 && p->senders[own].misnumbered == 0 | 0
!p->stopped[s] && before > best_number | before > best_number
!p->stopped[s] && before > best_number | !p->stopped[s]
            best = s; |
            best_number = before; |
p->newest + 2, __ATOMIC_ACQ_REL)) | p->newest + 1, __ATOMIC_ACQ_REL))
!p->is_numbered || !__atomic_exchange_n(stopped | !__atomic_exchange_n(stopped
!p->is_numbered || !__atomic_exchange_n(stopped | __atomic_exchange_n(stopped
(p->is_numbered ? stop_sender(p, number) : 0) | number % p->n_senders
(p->is_numbered ? stop_sender(p, number) : 0) | 0
n + 2 < stopped + p->chunk_heaps | n + 2 <= stopped + p->chunk_heaps
n + 2 < stopped + p->chunk_heaps | 0
|| __atomic_load_n(p->n_stops, __ATOMIC_ACQUIRE) >= p->n_enders) | )
(p->n_stops, -1, __ATOMIC_ACQ_REL) | (p->n_stops, 0, __ATOMIC_ACQ_REL)
p->is_numbered ? numbered_sender(p, data->items[NUMBER]) : p->n_described | p->n_described
(number & NUMBER_MASK) % | number %
number < 0 ? number : |
p->is_numbered ? numbered_sender(p, data->items[NUMBER]) : p->n_described | numbered_sender(p, data->items[NUMBER])
packet_size <= MOST_DESCRIPTOR | packet_size < MOST_DESCRIPTOR
&& !p->senders[who].described |
        p->n_described++; |
memcpy(p->descriptors + who * MOST_DESCRIPTOR | memcpy(p->descriptors + who
note_stop(p, items[NUMBER]); |
note_going(p, who, n); |
sender = p->senders + who; |
sender->last_ns = now; |
items[CHANNEL] >= 0 && items[CHANNEL] | items[CHANNEL]
items[CHANNEL] >= 0 && items[CHANNEL] != p->first_channel | 0
sender->number = items[NUMBER]; |
sender->misnumbered += p->is_numbered && | sender->misnumbered +=
numbered_sender(p, items[NUMBER]) != who; | 0;
>> SATURATED_SHIFT; | >> 31;
if (items[STATUS] >= 0) |
p->n_enders && p->newest >= 0 | p->n_enders && p->newest > 0
p->n_enders && p->newest >= 0 | p->n_enders
p->chunk_heaps + p->kept_chunks | p->chunk_heaps
    raise_to(p->known, p->newest); | raise_to(p->known, p->newest + 1);
raise_to(p->known + 1, now); | raise_to(p->known + 1, now + 1);
data->heap_index = (size_t)(p->chunk_heaps * p->n_senders); | data->heap_index = 0;
items[TIME] < 0 || | items[TIME] <= 0 ||
items[TIME] < 0 || |
|| items[SENDER] < 0 | || items[SENDER] <= 0
|| items[SENDER] < 0 |
items[HEAP_LENGTH] != p->heap_bytes | items[HEAP_LENGTH] < p->heap_bytes
items[HEAP_LENGTH] != p->heap_bytes | items[HEAP_LENGTH] > p->heap_bytes
items[SENDER] & p->sender_mask | items[SENDER]
who >= p->n_senders | who > p->n_senders
(is_other && !p->takes_offset) || !is_believed | !is_believed
is_other && !p->takes_offset | is_other
!is_believed(p, n, rest, who, now)) | (is_believed(p, n, rest, who, now), 0))
if (is_other) | if (1)
time < p->begin | time <= p->begin
time < p->begin | 0
flag = who * p->sender_flags | flag = who
% p->chunk_heaps * p->time_flags | % p->chunk_heaps
if (!is_first(p, chunk, flag)) | if (is_first(p, chunk, flag), 0)
data->chunk_id = chunk; | data->chunk_id = n;
data->heap_index = (size_t)flag; |
(size_t)(flag * p->heap_bytes) | (size_t)flag
data->extra[0] = 1; |
data->extra_offset = (size_t)flag; |
data->extra_size = 1; |
"""


def planted() -> dict[str, str]:
    """Name -> the text of place.c with one fault."""
    text = SOURCE.read_text()
    found = {}
    for line in REPLACED.strip().splitlines():
        before, after = (part.rstrip() for part in re.split(r" \|(?= |$)", line, maxsplit=1))
        assert text.count(before) == 1, f"place.c has {before!r} {text.count(before)} times"
        found[f"{before.strip()} -> {after.strip()}"] = text.replace(before, after)
    for pattern, other in {r"return 0;": "return 1;", r"return 1;": "return 0;", r"return;": ";"}.items():
        for i, match in enumerate(re.finditer(pattern, text)):
            found[f"{match[0]} number {i} -> {other}"] = text[: match.start()] + other + text[match.end() :]
    counted = list(re.finditer(r"count\(sender, \w+, [^;]+\);", text))
    for match, next_one in zip(counted, [*counted[1:], counted[0]], strict=True):
        for other in ("", next_one[0]):
            found[f"{match[0]} -> {other}"] = text[: match.start()] + other + text[match.end() :]
    return found


PLANTED = planted()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All of them in one library: place_0, place_1 and so on."""
    folder = tmp_path_factory.mktemp("mutants")
    sources = [folder / f"place_{i}.c" for i in range(len(PLANTED))]
    for path, text in zip(sources, PLANTED.values(), strict=True):
        path.write_text(f"#define place_heap {path.stem}\n{text}")
    as_c = [word for path in sources for word in ("-x", "c", path)]  # g++ takes -x for the next file only
    options = ("-std=c11", "-O0", "-w", "-fPIC", "-shared")
    outcome = run_compiler([*find_compiler().command, *options, *as_c, "-o", folder / "mutants.so"])
    assert outcome.code == 0, outcome.errors
    return ctypes.CDLL(str(folder / "mutants.so"))


def n_streams_until_found(function: Any) -> int:
    """Returns the number of the stream in which the fault is found, from 1; 0: in none of them."""
    for seed in range(N_STREAMS):
        try:
            compare(*drawn(Random(seed), N_HEAPS), function)
        except (AssertionError, ValueError):
            return seed + 1
    return 0


@pytest.mark.planted
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(library: ctypes.CDLL, fault: str) -> None:
    """It is looked for in a process of its own, since a wrong place may write anywhere."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if n_streams_until_found(library[f"place_{list(PLANTED).index(fault)}"]) else 1
        finally:  # whatever is raised, nothing of the tests goes on in this process
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WIFSIGNALED(status), f"not found in {N_STREAMS} streams of {N_HEAPS} heaps"


@pytest.mark.quick
def test_nothing_is_found_where_nothing_is_planted() -> None:
    assert n_streams_until_found(place_library().place_heap) == 0
