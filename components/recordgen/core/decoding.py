"""What decoding all images of a run may take, in each process.

Each image has its limits (``--limit``), but a file of some kB may hold thousands that announce
much, or name one image in thousands of rows:

    an image that was decoded lately     its result is used again
    others                               15 s by their estimates, and 25 s for each MB in files
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

from recordgen.core.image_settings import Limits
from recordgen.core.limits import DECODING_SECONDS, DECODING_SECONDS_MB
from recordgen.errors import PayloadError
from recordgen.rejects import RejectCode

# Images whose estimate is shorter are decoded each time, and files of so many bytes are compared.
_WORTH_SECONDS, _KEPT_BYTES = 0.002, 16_000_000

# Bytes of a file that stand for all of them until the rest is compared.
_SAMPLED_BYTES = 64


class Decoding:
    """The time that decoding has taken, and the results of the last costly images."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seconds = self._mb = 0.0
        self._kept: OrderedDict[object, tuple[bytes, Any]] = OrderedDict()
        self._kept_bytes = 0

    def __reduce__(self) -> tuple[type[Decoding], tuple[()]]:
        return Decoding, ()  # another process has taken nothing

    def spend(self, seconds: float, stored: int, limit: Limits) -> None:
        """Count the estimated time of an image that takes ``stored`` bytes in a file.

        Raises: PayloadError: with this image, decoding takes too long for the bytes so far.
        """
        with self._lock:
            self._mb += stored / 1e6
            most = DECODING_SECONDS.most + self._mb * DECODING_SECONDS_MB.most
            most *= max(1, limit.seconds / Limits().seconds)
            if self._seconds + seconds > most:
                raise PayloadError(
                    RejectCode.TOO_SLOW,
                    f"the images of this run take {self._mb:,.2f} MB in their files so far, and "
                    f"with this one, decoding them would take more than {most:,.0f} s of processor "
                    f"time; --limit seconds=… allows more",
                )
            self._seconds += seconds

    def result_of(self, data: bytes) -> Any:
        """Return what was kept for the same bytes; None if nothing was."""
        found = self._kept.get(_key(data))
        return found[1] if found is not None and found[0] == data else None

    def keep(self, data: bytes, seconds: float, result: Any) -> None:
        """Keep the result of an image that took ``seconds`` by its estimate."""
        if seconds < _WORTH_SECONDS:
            return
        with self._lock:
            if _key(data) in self._kept:
                return
            self._kept[_key(data)] = data, result
            self._kept_bytes += len(data)
            while self._kept_bytes > _KEPT_BYTES:
                _, (old, _) = self._kept.popitem(last=False)
                self._kept_bytes -= len(old)


def _key(data: bytes) -> object:
    return len(data), data[:: len(data) // _SAMPLED_BYTES + 1]
