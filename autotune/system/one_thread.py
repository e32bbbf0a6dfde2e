"""Limits NumPy's linear algebra to one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import ThreadpoolController

_libraries = ThreadpoolController()  # created once, since it scans all libraries of the process
_blas = _libraries.select(user_api="blas").lib_controllers
_at_work = Lock()  # a second search in this process waits, and does not change the number of threads meanwhile


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs linear algebra on one thread, since compile processes, on the other cores, would delay a call's threads."""
    if all(library.num_threads == 1 for library in _blas):  # true in a campaign's workers
        yield
        return
    with _at_work, _libraries.limit(limits=1, user_api="blas"):
        yield
