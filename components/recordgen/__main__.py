# PYTHON_ARGCOMPLETE_OK: argcomplete looks for these words.
"""The ``recordgen`` command, also ``python -m recordgen``; Ctrl-C ends it from the first line."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from recordgen.console.supervising import supervised


def main() -> None:
    """Run the command line as a process, which ends with it."""
    supervised(_run, _set_up_logs)


def _run() -> NoReturn:
    # Imports make a hundred thousand objects that stay; looking for cycles among them, after each
    # 700 by default, takes a tenth of a small conversion.
    gc.set_threshold(200_000)
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


def _set_up_logs() -> str:
    from recordgen import cli

    return cli.set_up_logs(sys.argv[1:])


def _end(number: int, frame: FrameType | None = None) -> NoReturn:
    os._exit(128 + number)


if __name__ == "__main__":
    main()
