"""How tests wait for a state: as long as it takes on a busy machine, and not for ever."""

import time
from collections.abc import Callable

DEADLINE_S = 120.0  # an idle machine needs a hundredth of it


def wait_until(holds: Callable[[], object], told: Callable[[], object] = str) -> None:
    """Returns when ``holds()`` is true.

    Raises:
        AssertionError: with ``told()``, when it is not after DEADLINE_S seconds.
    """
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end, told()
        time.sleep(0.01)
