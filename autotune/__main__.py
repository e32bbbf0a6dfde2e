"""``python -m autotune`` is the command ``autotune``."""

from .cli.program import main

main()
