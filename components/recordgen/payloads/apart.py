"""Check an image in its own process, which can be killed while a decoder runs, unlike a thread.

Starting a process takes some tenths of a second, so only images whose header announces much work
are checked this way.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError, RunnerError
from recordgen.rejects import RejectCode

if TYPE_CHECKING:
    from recordgen.payloads.image import CheckedImage

_log = logging.getLogger(__name__)

#: A check that takes longer is logged.
SILENT_SECONDS = 2.0

# Signals that people and systems send; all others come from the process itself.
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def check_apart(
    data: bytes, settings: PayloadSettings, uri: str, silent_seconds: float = SILENT_SECONDS
) -> CheckedImage:
    """Check an image in another process, for at most ``image_seconds`` of processor time.

    If the check takes longer than ``silent_seconds``, the log names the image. Other arguments: as
    for :func:`recordgen.payloads.image.check_image`.

    Raises:
        PayloadError: the image is refused.
        MemoryError: the process ran out of memory.
    """
    # The child must import the package from the same place.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from recordgen.payloads.apart import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            answer, _ = process.communicate(pickle.dumps((data, settings)), silent_seconds)
        except subprocess.TimeoutExpired:
            _log.info(
                "%s is slow to check: it may take %g s of processor time",
                uri,
                settings.limit.seconds,
            )
            answer, _ = process.communicate()
    status = process.returncode
    if status == -signal.SIGPROF:
        raise PayloadError(
            RejectCode.TOO_SLOW,
            f"an image must be decoded and checked within {settings.limit.seconds:g} s of "
            f"processor time; --limit seconds=… allows more",
        )
    if status == -signal.SIGKILL:
        raise MemoryError("the system killed the process that checked an image, to free memory")
    if status < 0 and -status not in _STOPS:
        name = signal.Signals(-status).name
        raise PayloadError(RejectCode.CORRUPT, f"the decoder crashed ({name})")
    if status:
        raise RunnerError(f"the process that checked an image exited with {status}; run it again")
    found: CheckedImage | PayloadError | MemoryError = pickle.loads(answer)
    if isinstance(found, Exception):
        raise found
    return found


def main() -> None:
    """Check the image on stdin; write the result to stdout."""
    from recordgen.payloads.image import prepare

    warnings.simplefilter("ignore")  # Pillow's warnings name no file
    found: CheckedImage | PayloadError | MemoryError
    try:
        data, settings = pickle.load(sys.stdin.buffer)
        # Processor time, not a timeout in the parent: a busy machine must not make an image too
        # slow.
        signal.setitimer(signal.ITIMER_PROF, settings.limit.seconds)
        found = prepare(data, settings).decode()
    except (PayloadError, MemoryError) as exc:
        found = exc
    except KeyboardInterrupt:  # the terminal interrupts all processes
        raise SystemExit(128 + signal.SIGINT) from None
    try:
        pickle.dump(found, sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)  # the parent is dead: exit without a message about the pipe
