"""Retry requests after transient failures.

The wait between two attempts is random and its upper bound doubles ("full jitter"), so requests
that were refused together are not repeated together.
"""

from __future__ import annotations

import errno
import io
import math
import os
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from threading import Event
from typing import Any, TypeVar, cast

from recordgen.errors import (
    RecordgenError,
    ResponseError,
    StorageError,
    UnreachableError,
    UsageError,
)
from recordgen.messages.masking import masked
from recordgen.rejects import RejectCode
from recordgen.storage.failures import Meaning, is_transient, meaning, status_of
from recordgen.storage.paths import is_http
from recordgen.storage.terms import ANY_REQUEST, RequestContext, may_retry

# botocore's bucket name for s3://KEY:SECRET@bucket: a secret without a scheme in front.
_USERINFO = re.compile(r"[^\s/@]+@?")


def to_error(exc: Exception, path: str, tried: str) -> Exception:
    """Map a failure to FileNotFoundError, PermissionError, IsADirectoryError or a StorageError.

    ``tried`` describes the attempts made; it is empty for a single attempt.
    """
    if isinstance(exc, RecordgenError):
        return exc
    status = status_of(exc)
    detail = f"HTTP {status}" if status else ""
    found = meaning(exc, path)
    if found is Meaning.MISSING:
        return FileNotFoundError(errno.ENOENT, detail, masked(path))
    if found is Meaning.NO_FILE:
        return IsADirectoryError(masked(path))
    if found is Meaning.FORBIDDEN:
        return PermissionError(errno.EACCES, detail, masked(path))
    reason = f"{type(exc).__name__}: {exc}".rstrip(": ")
    if is_http(path) and _quotes_server(exc):
        reason = type(exc).__name__
    if not str(exc) and any(kind.__name__ == "TimeoutError" for kind in type(exc).__mro__):
        reason = "timed out"
    text = ": ".join(filter(None, (path, detail, reason)))
    if tried:
        text = f"{text}; {tried}"
    if found in (Meaning.TRANSIENT, Meaning.UNTRUSTED):
        return UnreachableError(text)
    if found in _RESPONSE_CODES:
        return ResponseError(text, _RESPONSE_CODES[found].value)
    return StorageError(text)


def _quotes_server(exc: BaseException) -> bool:
    """Return whether the text of an error may quote a server: a banner, or its reason phrase.

    A row may name any port of an allowed server, and rejects are no scanner of what runs there.
    """
    return type(exc).__module__.startswith("aiohttp") and not isinstance(exc, OSError)


_RESPONSE_CODES = {
    Meaning.REFUSED: RejectCode.HTTP_ERROR,
    Meaning.MALFORMED: RejectCode.BAD_RESPONSE,
}


def shown_cause(exc: Exception) -> Exception | None:
    """Return the cause for a traceback; None if its text may hold a secret."""
    text = str(exc)
    has_user = any(":" in name and name.endswith("@") for name in _USERINFO.findall(text))
    return None if has_user or masked(text) != text else exc


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Map what a library raises by :func:`to_error`."""
    try:
        yield
    except RecordgenError:
        raise
    except Exception as exc:  # noqa: BLE001 -- whatever a library raises is mapped
        raise to_error(exc, path, "") from shown_cause(exc)


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of retries.

    Each field can be set by an environment variable, such as ``RECORDGEN_STORAGE_ATTEMPTS``.

    Attributes:
        attempts: most attempts of a request.
        first_wait_seconds: longest wait before the second attempt; it doubles for each further one.
        longest_wait_seconds: upper bound of the doubling.
        timeout_seconds: a connection fails after this long without data.
        total_seconds: a look-up or read of a row's file fails after this time, retries included.
    """

    attempts: int = 8
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    timeout_seconds: float = 30.0
    total_seconds: float = 300.0

    @classmethod
    def from_environment(cls) -> RetryPolicy:
        """Return the policy set by environment variables. Raises: UsageError."""
        values = {}
        for item in fields(cls):
            variable = f"RECORDGEN_STORAGE_{item.name.upper()}"
            if text := os.environ.get(variable):
                try:
                    values[item.name] = type(getattr(cls(), item.name))(text)
                except ValueError as exc:
                    raise UsageError(f"{variable} must be a number (got {text!r})") from exc
        return cls(**values)


def deadline() -> float:
    """Return the deadline of a request that begins now, as a time of ``time.monotonic``."""
    return time.monotonic() + RetryPolicy.from_environment().total_seconds


def run_until(end: float | None, begin: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run the coroutine that ``begin`` creates on fsspec's event loop and wait for it.

    ``end`` is a :func:`deadline`, as a body may drip in for hours. Raises: TimeoutError.
    """
    import asyncio

    from fsspec.asyn import get_loop, sync  # local files need neither

    async def limited() -> _T:
        return await asyncio.wait_for(begin(), None if end is None else end - time.monotonic())

    return cast(_T, sync(get_loop(), limited))


def retried(action: Callable[[], _T], path: str, context: RequestContext = ANY_REQUEST) -> _T:
    """Return the result of ``action``, which must be safe to repeat.

    Args:
        action: calls a storage library.
        path: path for the error.
        context: there are no more retries once its ``stop`` is set or its ``deadline`` is over.

    Raises:
        FileNotFoundError: there is nothing at ``path``; not retried.
        PermissionError: access is denied; not retried.
        IsADirectoryError: it is not a file; not retried.
        UnreachableError: every attempt failed, or the server's certificate is not trusted.
        ResponseError: a web server refuses the request, or its response is invalid.
        StorageError: another lasting failure, such as a wrong setting.
    """
    import tenacity  # local files do not need it

    policy = RetryPolicy.from_environment()
    stop = context.stop or Event()
    end = math.inf if context.deadline is None else context.deadline
    started = time.monotonic()
    attempts = policy.attempts if may_retry() else 1
    is_over = tenacity.stop_after_attempt(attempts) | tenacity.stop_when_event_set(stop)
    wait = tenacity.wait_random_exponential(policy.first_wait_seconds, policy.longest_wait_seconds)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda exc: is_transient(exc, path)),
        stop=lambda state: is_over(state) or time.monotonic() >= end,
        wait=lambda state: max(0, min(wait(state), end - time.monotonic())),
        sleep=tenacity.sleep_using_event(stop),
        reraise=True,
    )
    try:
        return retrying(action)
    except Exception as exc:
        tried = retrying.statistics["attempt_number"]
        now = time.monotonic()
        text = f"tried {tried} times in {now - started:.0f} s" if tried > 1 else ""
        if now >= end:
            late = f"one file may take {policy.total_seconds:g} s"
            text = f"{text}; {late}" if text else late
        error = to_error(exc, path, text)
        if error is exc:
            raise
        raise error from shown_cause(exc)


class RetriedFile(io.RawIOBase):
    """An fsspec file that retries reads."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file

    def readable(self) -> bool:  # noqa: D102
        return True

    def seekable(self) -> bool:  # noqa: D102
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:  # noqa: D102
        at = self._file.tell()

        def read() -> bytes:
            if self._file.tell() != at:
                self._file.seek(at)
            return bytes(self._file.read(len(buffer)))

        data = retried(read, self._path)
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:  # noqa: D102
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:  # noqa: D102
        return int(self._file.tell())

    def close(self) -> None:  # noqa: D102
        self._file.close()
        super().close()
