"""Holds NumPy's linear algebra to one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import ThreadpoolController

_libraries = ThreadpoolController()  # the BLAS among them; made once, since it looks through all of the process
_blas = _libraries.select(user_api="blas").lib_controllers
_at_work = Lock()  # a second search of the process waits, rather than set the number of threads meanwhile


@contextmanager
def one_thread() -> Iterator[None]:
    """Run linear algebra on one thread: compile processes use the other cores, and a call waits for its last thread."""
    if all(library.num_threads == 1 for library in _blas):  # a campaign's workers have set it so: nothing to do
        yield
        return
    with _at_work, _libraries.limit(limits=1, user_api="blas"):
        yield
