"""Check an image: in this thread, or in its own process, which can be killed while a decoder runs.

Starting a process takes some tenths of a second, so only images whose header announces much work
are checked there. All threads of a process share one budget of memory for decoded images:

    a photo of 12 megapixels, baseline JPEG     2 MB   starts at once
    a WEBP of 12 megapixels                   150 MB   waits until the budget has room
    a PNG of 100 megapixels                   1.2 GB   exceeds the budget: decoded on its own

An image that exceeds the budget is not refused: whether an image is accepted must not depend on the
machine.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition

from PIL import Image

from recordgen.core import allowance
from recordgen.core.image_settings import Limits
from recordgen.core.ordered import KILLED, OUT_OF_TIME, STOPPED, has_python, start_main
from recordgen.core.settings import PayloadSettings
from recordgen.errors import PayloadError, RunnerError
from recordgen.measures.pictures import SmallPicture
from recordgen.payloads.header import FileHeader
from recordgen.payloads.image import prepare
from recordgen.payloads.opening import decoded, open_image, out_of_memory
from recordgen.payloads.reencoding import CheckedImage, Prepared
from recordgen.rejects import RejectCode
from recordgen.storage.memory import memory_limit

#: An image is checked in its own process if its estimated time exceeds this share of
#: image_seconds, so that starting a process costs little compared with the check.
APART_SHARE = 1 / 10

#: Images that need less skip the budget: threads cannot hold enough of them to matter.
SMALL_BYTES = 32_000_000

# Share of the machine's memory for all processes of a run, at most one for each core.
_SHARE = 1 / 2
_LEAST_BYTES = 256_000_000


class MemoryBudget:
    """A limit on the bytes that several threads hold at the same time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._held = 0

    @contextmanager
    def hold(self, size: int, most: int) -> Iterator[None]:
        """Hold ``size`` bytes, after waiting until they fit in ``most`` or none are held."""
        with self._changed:
            self._changed.wait_for(lambda: self._held == 0 or self._held + size <= most)
            self._held += size
        try:
            yield
        finally:
            with self._changed:
                self._held -= size
                self._changed.notify_all()


#: The budget of this process.
DECODING = MemoryBudget()


@cache
def default_budget() -> int:
    """Return half of the memory of this machine or container, divided by its cores."""
    cores = os.cpu_count() or 1
    return max(_LEAST_BYTES, int(memory_limit() * _SHARE / cores))


def check_image(data: bytes, settings: PayloadSettings, stored: int | None = None) -> CheckedImage:
    """Check and normalise one image.

    Args:
        data: the file's bytes.
        settings: ``check``, ``limit`` and the settings of :mod:`recordgen.payloads.resizing` are
            used.
        stored: bytes that it takes in the file that holds it; None: as many as it has.

    Raises: PayloadError: the image is refused.
    """
    decoding, limit = settings.decoding, settings.limit
    found = decoding.result_of(data)
    if found is None:
        try:
            prepared = prepare(data, settings)
            decoding.spend(prepared.seconds, len(data) if stored is None else stored, limit)
            found = _outcome(data, prepared, settings)
        except MemoryError as exc:
            raise out_of_memory() from exc
        size = 0 if isinstance(found, PayloadError) else len(found.data)
        decoding.keep(data, prepared.seconds, found, size)
    if isinstance(found, PayloadError):
        raise PayloadError(found.code, found.message)
    checked: CheckedImage = found
    return checked


def _outcome(
    data: bytes, prepared: Prepared, settings: PayloadSettings
) -> CheckedImage | PayloadError:
    """Return the checked image, or why it is refused, within the budget of memory.

    Raises: MemoryError, PayloadError: memory does not suffice now.
    """
    apart = _is_costly(prepared, settings)
    try:
        if not apart and prepared.bytes < SMALL_BYTES:
            return prepared.decode()
        with DECODING.hold(int(prepared.bytes), settings.limit.memory_bytes or default_budget()):
            return check_apart(data, settings) if apart else prepared.decode()
    except PayloadError as exc:
        if exc.code == RejectCode.OUT_OF_MEMORY:
            raise
        return exc


def _is_costly(prepared: Prepared, settings: PayloadSettings) -> bool:
    return prepared.seconds > settings.limit.seconds * APART_SHARE and has_python()


def decoded_mask(file: FileHeader, data: bytes, limit: Limits) -> Image.Image:
    """Return the decoded picture of a mask, of which the caller has compared the header.

    If the header announces much work, the decoder runs in its own process first, as for an image.

    Raises: PayloadError: it is too large, or the decoder crashes or takes too long.
    """
    limit.check_size(len(data))
    limit.check_pixels(file.height, file.width)
    look = PayloadSettings(limit=limit)
    if _is_costly(prepare(data, look), look):
        check_image(data, look)
        allowance.count_processes()
    image = open_image(file)
    decoded(file.format, image.load)
    return image


def picture_in_small(
    data: bytes, settings: PayloadSettings, stored: int | None = None
) -> SmallPicture | None:
    """Return the downscaled image for near-duplicate checks; None if it does not decode.

    Args: as for :func:`check_image`; ``settings`` note looks.
    """
    try:
        return check_image(data, settings, stored).small
    except PayloadError:
        return None  # making the example reports the reason


def check_apart(data: bytes, settings: PayloadSettings) -> CheckedImage:
    """Check an image in another process, for at most ``image_seconds`` of processor time.

    Args: as for :func:`check_image`.

    Raises: PayloadError: the image is refused; MemoryError: the process ran out of memory.
    """
    with start_main(__name__) as process:
        answer, _ = process.communicate(pickle.dumps((data, settings)))
    status = process.returncode
    if status == OUT_OF_TIME:
        raise PayloadError(
            RejectCode.TOO_SLOW,
            f"an image must be decoded and checked within {settings.limit.seconds:g} s of "
            f"processor time; --limit seconds=… allows more",
        )
    if status == KILLED:
        raise MemoryError("the system killed the process that checked an image, to free memory")
    if status < 0 and status not in STOPPED:
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
    warnings.simplefilter("ignore")  # Pillow's warnings name no file
    found: CheckedImage | PayloadError | MemoryError
    try:
        data, settings = pickle.load(sys.stdin.buffer)
        # Processor time, not a timeout in the parent: a busy machine must not make an image too
        # slow.
        if sys.platform != "win32":
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
