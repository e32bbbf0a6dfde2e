"""Prints one line for each config, in the manner of Kernel Tuner."""

from collections.abc import Callable, Mapping
from typing import Any

from ..records.trial import Trial

MANY = 5000  # trials, from which a shorter search is proposed


class Lines:
    """Implements ``sweep.progress.Progress``: one line for each measured or failed config.

    Args:
        is_long: whether the whole message of a failure is printed, or its first line.
        shorter: the arguments that make a search of 2 minutes of many trials; "" if the call has a limit.
    """

    def __init__(self, print_line: Callable[[str], Any], is_long: bool, shorter: str = "") -> None:
        self.note, self._is_long, self._shorter = print_line, is_long, shorter

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        self.note(title + (f"; {n_done} trials already recorded" if n_done else ""))
        if self._shorter and n_total - n_done > MANY:
            self.note(f"a search of 2 minutes in place of all configs: {self._shorter}")

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        config = ", ".join(f"{name}={value}" for name, value in trial.config.items())
        if trial.median_s is not None:
            remark = f" ({trial.message})" if trial.message not in ("", "unverified") else ""
            self.note(f"{config}, time={1e3 * trial.median_s:.4g}ms{remark}")
        else:
            why = trial.message if self._is_long else trial.message.partition("\n")[0][:160]
            self.note(f"{config}: {trial.status}: {why}")

    def finalists(self, n: int) -> None:
        self.note(f"final round: measuring the best {n} configs again")

    def end(self, counts: Mapping[str, int]) -> None:
        failed = {status: n for status, n in counts.items() if status != "measured" and n}
        if failed:
            self.note("not measured: " + ", ".join(f"{n} {status}" for status, n in failed.items()))
