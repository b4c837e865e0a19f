"""Retry requests after transient failures.

The wait between two attempts is random and its upper bound doubles ("full jitter"), so requests
that were refused together are not repeated together.

Each library has its own exceptions, and any library may not be installed. So exceptions are
classified (:class:`Meaning`) by their HTTP status, or by the names of their classes if they carry
none.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from threading import Event
from typing import Any, TypeVar, cast

from recordgen import errors
from recordgen.messages.masking import masked
from recordgen.rejects import RejectCode
from recordgen.storage.access import ANY_REQUEST, RequestContext, may_retry
from recordgen.storage.paths import is_http


class Meaning(Enum):
    """What a failure means."""

    MISSING = "there is no such file"
    NO_FILE = "it exists, but is not a file"
    FORBIDDEN = "reading it is not allowed"
    REFUSED = "the server refuses this request"
    MALFORMED = "the response is not valid HTTP"
    TRANSIENT = "a retry may succeed"
    UNTRUSTED = "the server's certificate is not trusted"
    LASTING = "a retry will not help"


class TransientFailure(Exception):
    """A transient failure of a request, as a class that no library knows and so none retries.

    Attributes:
        status: the HTTP status; None if there was no response.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


# Meanings of HTTP statuses; the meaning of any other status depends on the storage.
_BY_STATUS = {
    **dict.fromkeys((408, 425, 429, 500, 502, 503, 504, 507, 508, 509, 529), Meaning.TRANSIENT),
    **dict.fromkeys((401, 402, 403, 451), Meaning.FORBIDDEN),
    **dict.fromkeys((404, 410), Meaning.MISSING),
}

#: Statuses after which a retry may succeed.
TRANSIENT_STATUS = {status for status, found in _BY_STATUS.items() if found is Meaning.TRANSIENT}

# Meanings of the libraries' classes.
_BY_NAME = {
    # A failed connection.
    "aiohttp.ClientConnectionError": Meaning.TRANSIENT,
    "aiohttp.ClientPayloadError": Meaning.TRANSIENT,
    "asyncio.TimeoutError": Meaning.TRANSIENT,  # of Python 3.10; later it is an OSError
    "azure.ServiceRequestError": Meaning.TRANSIENT,
    "azure.ServiceResponseError": Meaning.TRANSIENT,
    "azure.IncompleteReadError": Meaning.TRANSIENT,
    "botocore.ConnectionError": Meaning.TRANSIENT,
    "botocore.HTTPClientError": Meaning.TRANSIENT,
    "botocore.IncompleteReadError": Meaning.TRANSIENT,
    "botocore.ResponseParserError": Meaning.TRANSIENT,
    "botocore.ResponseStreamingError": Meaning.TRANSIENT,
    "gcsfs.ChecksumError": Meaning.TRANSIENT,
    "google.TransportError": Meaning.TRANSIENT,
    "http.HTTPException": Meaning.TRANSIENT,
    "requests.RequestException": Meaning.TRANSIENT,
    # An impossible name, which is the row's fault.
    "aiohttp.InvalidURL": Meaning.MISSING,
    "botocore.ParamValidationError": Meaning.MISSING,
}

# Meanings of Python's classes. No plain ValueError: it may come from a wrong setting.
_BY_CLASS: dict[type, Meaning] = {
    errors.RecordgenError: Meaning.LASTING,
    TransientFailure: Meaning.TRANSIENT,
    FileNotFoundError: Meaning.MISSING,
    IsADirectoryError: Meaning.NO_FILE,
    NotADirectoryError: Meaning.NO_FILE,
    PermissionError: Meaning.FORBIDDEN,
    UnicodeError: Meaning.MISSING,  # the name of a bucket, object or host
    # The response was truncated, or comes from a proxy.
    UnicodeDecodeError: Meaning.TRANSIENT,
    json.JSONDecodeError: Meaning.TRANSIENT,
    EOFError: Meaning.TRANSIENT,
    OSError: Meaning.TRANSIENT,
}

# aiohttp's parser raises this for an invalid header or status, with the status 400.
_BAD_MESSAGE = "aiohttp.BadHttpMessage"

# Python's own; by name, since readers of local files need not load ssl.
_UNTRUSTED = "ssl.SSLCertVerificationError"

_IMPOSSIBLE_TEXTS = ("Bad Request: ", "embedded null byte")  # gcsfs's 400; Python's

_FORBIDDEN_TEXT = "Forbidden: "  # gcsfs's 403

# S3 errors about the caller, not the object; s3fs turns some into PermissionErrors.
_CREDENTIAL_CODES = frozenset(
    {
        "AccountProblem",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidSecurity",
        "InvalidToken",
        "NotSignedUp",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)

# Google's texts for an expired or invalid token.
_CREDENTIAL_TEXTS = ("invalid credentials", "invalid authentication", "invalid_grant")


def is_transient(exc: BaseException, path: str) -> bool:
    """Return whether a retry may succeed."""
    return meaning(exc, path) is Meaning.TRANSIENT


def meaning(exc: BaseException, path: str) -> Meaning:
    """Return the meaning of a failure to read ``path``."""
    by_type = _by_type(exc)
    if by_type in (Meaning.MISSING, Meaning.NO_FILE, Meaning.LASTING):
        return by_type
    if _credentials_failed(exc):
        return Meaning.LASTING
    if _is_impossible(exc):
        return Meaning.MISSING
    causes = list(_causes(exc))
    status = status_of(exc)
    if status is not None:
        is_parsed = not any(_BAD_MESSAGE in map(_name, type(item).__mro__) for item in causes)
        return _of_status(status, exc, path) if is_parsed else Meaning.MALFORMED
    if by_type is Meaning.FORBIDDEN or str(exc).startswith(_FORBIDDEN_TEXT):
        return Meaning.FORBIDDEN
    if any(_UNTRUSTED in map(_name, type(item).__mro__) for item in causes):
        return Meaning.UNTRUSTED
    if is_http(path) and any(map(_is_unknown_host, causes)):
        return Meaning.MISSING
    if any(map(_is_lost_connection, causes)):
        return Meaning.TRANSIENT
    return by_type or Meaning.LASTING


def _of_status(status: int, exc: BaseException, path: str) -> Meaning:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if is_http(path):
        return Meaning.REFUSED if status < 500 else Meaning.TRANSIENT
    # Google returns 400 for an impossible name; S3 also for wrong credentials and regions.
    is_gcs = path.startswith(("gs://", "gcs://"))
    is_named = status == 400 and is_gcs and "requester pays" not in str(exc)
    return Meaning.MISSING if is_named else Meaning.LASTING


def _by_type(exc: BaseException) -> Meaning | None:
    """Return the meaning of the first class in the exception's MRO that a table contains."""
    for kind in type(exc).__mro__:
        if found := _BY_CLASS.get(kind) or _BY_NAME.get(_name(kind)):
            return found
    return None


def _is_lost_connection(exc: BaseException) -> bool:
    return any(_BY_NAME.get(_name(kind)) is Meaning.TRANSIENT for kind in type(exc).__mro__)


def status_of(exc: BaseException) -> int | None:
    """Return the HTTP status that an exception or one of its causes carries."""
    for item in _causes(exc):
        if _is_lost_connection(item):
            return None  # aiohttp gives a broken connection the status 400 of its parser
        response = getattr(item, "response", None)
        if isinstance(response, dict):  # botocore
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:  # aiohttp; azure; gcsfs
            named = (getattr(item, name, None) for name in ("status", "status_code", "code"))
            status = next((value for value in named if value is not None), None)
        text = str(status)
        if text.isdecimal() and 400 <= int(text) < 600:
            return int(text)
    return None


def _credentials_failed(exc: BaseException) -> bool:
    """Return whether storage rejected our credentials, not the object."""
    for item in _causes(exc):
        response = getattr(item, "response", None)
        if isinstance(response, dict):
            return response.get("Error", {}).get("Code") in _CREDENTIAL_CODES
    text = str(exc).lower()
    return any(known in text for known in _CREDENTIAL_TEXTS)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    following: BaseException | None = exc
    while following is not None:
        yield following
        inner = getattr(following, "os_error", None)  # of aiohttp's connection errors
        if isinstance(inner, BaseException):
            yield inner
        following = following.__cause__


def _name(kind: type) -> str:
    """Return a class's top-level package and name, such as ``aiohttp.InvalidURL``."""
    return f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def _is_unknown_host(exc: BaseException) -> bool:
    import socket  # whoever reads local files does not need it

    return isinstance(exc, socket.gaierror) and exc.errno in (
        socket.EAI_NONAME,
        getattr(socket, "EAI_NODATA", socket.EAI_NONAME),
    )


def _is_impossible(exc: BaseException) -> bool:
    """Return whether no bucket, object or host can have such a name."""
    if "requester pays" in str(exc):  # gcsfs's ValueError
        return False
    return (isinstance(exc, ValueError) and str(exc).startswith(_IMPOSSIBLE_TEXTS)) or (
        isinstance(exc, OSError) and exc.errno == errno.ENAMETOOLONG
    )


# botocore's bucket name for s3://KEY:SECRET@bucket: a secret without a scheme in front.
_USERINFO = re.compile(r"[^\s/@]+@?")


def to_error(exc: Exception, path: str, tried: str) -> Exception:
    """Map a failure to FileNotFoundError, PermissionError, IsADirectoryError or a StorageError.

    ``tried`` describes the attempts made; it is empty for a single attempt.
    """
    if isinstance(exc, errors.RecordgenError):
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
    # An error of aiohttp may quote a banner, or the server's reason phrase. A row may name any port
    # of an allowed server, and rejects are no scanner of what runs there.
    is_quote = type(exc).__module__.startswith("aiohttp") and not isinstance(exc, OSError)
    if is_http(path) and is_quote:
        reason = type(exc).__name__
    if not str(exc) and any(kind.__name__ == "TimeoutError" for kind in type(exc).__mro__):
        reason = "timed out"
    text = ": ".join(filter(None, (path, detail, reason)))
    if tried:
        text = f"{text}; {tried}"
    if found in (Meaning.TRANSIENT, Meaning.UNTRUSTED):
        return errors.UnreachableError(text)
    if found in _RESPONSE_CODES:
        return errors.ResponseError(text, _RESPONSE_CODES[found].value)
    return errors.StorageError(text)


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
    except errors.RecordgenError:
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
                    raise errors.UsageError(f"{variable} must be a number (got {text!r})") from exc
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
