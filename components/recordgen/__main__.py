"""The ``recordgen`` command, also ``python -m recordgen``; Ctrl-C ends it from the first line."""

from __future__ import annotations

import gc
import os
import signal
from types import FrameType
from typing import NoReturn

# Objects that are made before Python looks for cycles. Imports alone make a hundred thousand that
# stay, and its default of 700 takes a tenth of a small conversion.
_COLLECT_AT = 200_000


def main() -> NoReturn:
    """Run the command line as a process."""
    gc.set_threshold(_COLLECT_AT)
    handler = signal.getsignal(signal.SIGINT)
    try:
        if callable(handler):  # a shell's background jobs ignore Ctrl-C
            # Not an exception yet: modules in C swallow it while they import others.
            signal.signal(signal.SIGINT, _end)
        from recordgen import cli

        signal.signal(signal.SIGINT, handler)
        cli.exit_main()
    except KeyboardInterrupt:  # before or after the command handles it
        _end(signal.SIGINT)


def _end(number: int, frame: FrameType | None = None) -> NoReturn:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
