"""What a person sees who starts a pipeline: progress, one line per error, no noise.

Nothing here happens at import: the entry points call it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable

from recordgen.errors import RecordgenError

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def run_main(main: Callable[[], None]) -> int:
    """Call ``main`` and return the exit code: 0, 1 (data or storage), 2 (usage), 130 (Ctrl-C).

    What goes wrong on the user's side is one line on stderr; anything else is a bug and keeps its
    traceback.
    """
    try:
        main()
    except RecordgenError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return exc.exit_code
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("\ninterrupted: run it again to go on, finished steps are kept", file=sys.stderr)
        return INTERRUPTED
    return 0


class StepProgress(logging.Handler):
    """Print a line per pipeline step, from what TFX's local runner logs.

    ``[3/7] SchemaGen … 0.2 s``, and ``… from cache`` for a step that was done before. If a TFX
    version words its log otherwise, the lines are missing and nothing else happens.
    """

    _RUNNING = re.compile(r"Component (\S+) is running\.")
    _FINISHED = re.compile(r"Component (\S+) is finished\.")
    _CACHED = re.compile(r"A cached execution \d+ is used\.")

    def __init__(self, steps: int) -> None:
        super().__init__(logging.INFO)
        self._steps = steps
        self._number = 0
        self._since = 0.0
        self._cached = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print what ``record`` says about a step, if anything."""
        message = record.getMessage()
        if match := self._RUNNING.fullmatch(message):
            self._number += 1
            self._since, self._cached = time.monotonic(), False
            print(f"[{self._number}/{self._steps}] {match[1]} …", flush=True)
        elif self._CACHED.fullmatch(message):
            self._cached = True
        elif match := self._FINISHED.fullmatch(message):
            seconds = time.monotonic() - self._since
            how = "from cache" if self._cached else f"{seconds:.1f} s"
            print(f"[{self._number}/{self._steps}] {match[1]}: {how}", flush=True)


class EpochProgress(logging.Handler):
    """Print Recordgen's own log lines, indented below their step."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print ``record``."""
        print(f"      {record.getMessage()}", flush=True)


class UserWarnings(logging.Handler):
    """Show on stderr what the user's own code warns of through absl, as TFX's does."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Print ``record`` if it does not come from an installed library."""
        if "site-packages" not in record.pathname:
            print(f"{record.levelname} {record.getMessage()}", file=sys.stderr, flush=True)


def show_progress(steps: int, *, verbose: bool = False) -> None:
    """Print progress of a run with ``steps`` components; call it after importing TFX.

    Args:
        steps: components in the pipeline.
        verbose: let TFX's own log through as well.
    """
    if verbose:
        logging.basicConfig(level=logging.INFO, force=True)
    import absl.logging

    # Not by the logger's own setLevel: TensorFlow sets absl's verbosity back to what absl knows.
    absl.logging.set_verbosity(absl.logging.INFO)
    tfx_log = logging.getLogger("absl")
    tfx_log.handlers = [StepProgress(steps)]
    if not verbose:
        tfx_log.addHandler(UserWarnings())
    tfx_log.propagate = verbose
    own_log = logging.getLogger("recordgen")
    own_log.handlers = [EpochProgress(logging.INFO)]
    own_log.setLevel(logging.INFO)
    own_log.propagate = False
