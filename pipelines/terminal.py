"""The terminal output of pipelines: progress, and one line per error."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from recordgen.console.quiet import load_tensorflow, waiting
from recordgen.errors import MissingPackageError, RecordgenError


def run_main(main: Callable[[], None]) -> int:
    """Call ``main`` and return the exit code: 0, 1 (data or storage), 2 (usage), 130 (Ctrl-C).

    A user's error is one line on stderr; anything else is a bug and keeps its traceback.
    """
    try:
        try:
            main()
        except ImportError as exc:
            raise MissingPackageError.of(exc, "this") or exc from exc
    except RecordgenError as exc:
        print(f"error: {exc}", file=sys.stderr)
        return exc.exit_code
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("\ninterrupted: run it again to resume; finished steps are kept", file=sys.stderr)
        return 130  # 128 + SIGINT, as in shells
    return 0


class StepProgress(logging.Handler):
    """Prints a line per pipeline step, from the log of TFX's local runner.

    ``[3/7] SchemaGen: 0.2 s``, or ``…: from cache``. If another TFX version logs other words, there
    are no such lines.
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
        """Print the progress in ``record``, if any."""
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


@contextmanager
def loading_tfx(*, verbose: bool = False) -> Iterator[None]:
    """Say every few seconds that the block imports TFX, which takes 10 s or more."""
    print("loading TFX …", flush=True)
    with waiting("loading TFX", partial(print, flush=True)):
        if not verbose:
            load_tensorflow()
        yield


def show_progress(steps: int, *, verbose: bool = False) -> None:
    """Print progress of a run with ``steps`` components; call it after importing TFX.

    ``verbose`` also shows TFX's own log.
    """
    if verbose:
        logging.basicConfig(level=logging.INFO, force=True)
    import absl.logging

    # Do not use the logger's setLevel: TensorFlow resets absl's verbosity.
    absl.logging.set_verbosity(absl.logging.INFO)
    tfx_log = logging.getLogger("absl")
    tfx_log.handlers = [StepProgress(steps)]
    if not verbose:
        warnings = logging.StreamHandler()
        warnings.setLevel(logging.WARNING)
        warnings.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        # Those of the user's code, not of installed libraries.
        warnings.addFilter(lambda record: "site-packages" not in record.pathname)
        tfx_log.addHandler(warnings)
    tfx_log.propagate = verbose
    own_log = logging.getLogger("recordgen")
    epochs = logging.StreamHandler(sys.stdout)
    epochs.setFormatter(logging.Formatter("      %(message)s"))  # indented below their step
    own_log.handlers = [epochs]
    own_log.setLevel(logging.INFO)
    own_log.propagate = False
