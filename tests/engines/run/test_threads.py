"""When an engine ends, no thread of it waits in a receiver, which the end of the interpreter would destroy under it."""

import threading
from functools import partial

from autotune.engines.run.cores import ThreadCores
from autotune.engines.run.queues import Ending
from autotune.engines.run.threads import run_beside


def test_a_reader_of_a_silent_source_is_woken_and_has_ended_before_the_engine_returns() -> None:
    ending, heard = Ending(), threading.Event()
    ending.wakes.append(heard.set)
    readers = {"reads": partial(heard.wait, 60.0)}
    run_beside(ending, readers, {}, ending.asked.set, lambda: None, ThreadCores())
    assert heard.is_set() and "autotune-reads" not in [thread.name for thread in threading.enumerate()]
