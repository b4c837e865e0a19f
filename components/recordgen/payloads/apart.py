"""Check an image in a process of its own, which can be ended while a decoder runs.

A thread cannot be. Starting a process takes some tenths of a second, so only images whose header
promises much work are checked so.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from recordgen.errors import PayloadError
from recordgen.options import ConvertOptions
from recordgen.rejects import RejectCode

if TYPE_CHECKING:
    from recordgen.payloads.image import CheckedImage

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)


def check_apart(data: bytes, options: ConvertOptions) -> CheckedImage:
    """Check an image in another process, for at most ``image_seconds`` of processor time.

    Raises:
        PayloadError: the image is refused.
        MemoryError: the process ran out of memory.
    """
    # The child must find the package where this process did.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from recordgen.payloads.apart import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((data, options)),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode == -signal.SIGPROF:
        raise PayloadError(
            RejectCode.TOO_SLOW,
            f"an image must be decoded and checked within {options.image_seconds:g} s of processor "
            f"time; --image-seconds allows more",
        )
    if -done.returncode in _CRASHES:
        name = signal.Signals(-done.returncode).name
        raise PayloadError(RejectCode.CORRUPT, f"the decoder crashed ({name})")
    if done.returncode == -signal.SIGKILL:
        raise MemoryError("the system ended the process that checked an image, for its memory")
    if done.returncode:
        raise RuntimeError(f"the process that checked an image ended with {done.returncode}")
    found: CheckedImage | PayloadError = pickle.loads(done.stdout)
    if isinstance(found, PayloadError):
        raise found
    return found


def main() -> None:
    """Check the image on stdin; write what is found to stdout."""
    from recordgen.payloads.image import prepare

    data, options = pickle.load(sys.stdin.buffer)
    # Not a timeout of the parent: on a busy machine an image must not become too slow.
    signal.setitimer(signal.ITIMER_PROF, options.image_seconds)
    found: CheckedImage | PayloadError
    try:
        found = prepare(data, options).decode()
    except PayloadError as exc:
        found = exc
    except KeyboardInterrupt:  # the terminal tells all processes
        raise SystemExit(128 + signal.SIGINT) from None
    sys.stdout.buffer.write(pickle.dumps(found))
