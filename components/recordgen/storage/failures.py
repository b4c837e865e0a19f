"""What the exceptions of storage libraries mean: not there, may not, will pass, will not pass.

Each library has exceptions of its own, some hide an HTTP status in them, and none of the libraries
need be installed: they are told apart by status, and by name where there is none.
"""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from recordgen.errors import RecordgenError, StorageError
from recordgen.storage.paths import is_http

#: A server answers so when it may answer otherwise next time.
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 507, 508, 509, 529})
_FORBIDDEN_STATUS = frozenset({401, 402, 403, 451})
_MISSING_STATUS = frozenset({404, 410})

# Failures of a connection that carry no status. OSErrors need not be named.
_TRANSIENT_NAMES = frozenset(
    {
        "aiohttp.ClientConnectionError",
        "aiohttp.ClientPayloadError",
        "azure.ServiceRequestError",
        "azure.ServiceResponseError",
        "azure.IncompleteReadError",
        "botocore.ConnectionError",
        "botocore.HTTPClientError",
        "botocore.IncompleteReadError",
        "botocore.ResponseParserError",
        "botocore.ResponseStreamingError",
        "gcsfs.ChecksumError",
        "google.TransportError",
        "http.HTTPException",
        "requests.RequestException",
    }
)

# The last two: an answer that was cut, or is somebody else's, such as a proxy's page.
_TRANSIENT_KINDS = (
    OSError,
    EOFError,
    asyncio.TimeoutError,
    json.JSONDecodeError,
    UnicodeDecodeError,
)

# A name that cannot be is the row's fault. Any other ValueError may be a setting's.
_IMPOSSIBLE_NAMES = frozenset({"aiohttp.InvalidURL", "botocore.ParamValidationError"})
_IMPOSSIBLE_TEXTS = ("Bad Request: ", "embedded null byte")  # gcsfs's 400; the system's

# S3 says these of whoever asks, not of the object; s3fs makes PermissionErrors of some.
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

# Google's, for a token that has run out or was never valid.
_CREDENTIAL_TEXTS = ("invalid credentials", "invalid authentication", "invalid_grant")


class HttpStatusError(OSError):
    """A server answered with an error.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, status: int, reason: str | None) -> None:
        super().__init__(reason or "no reason given")
        self.status = status


class Meaning(Enum):
    """What a failure says."""

    MISSING = "there is no such file"
    NO_FILE = "there is something, but no file"
    FORBIDDEN = "it may not be read"
    TRANSIENT = "it may pass"
    LASTING = "it will not pass"


def is_transient(exc: BaseException, path: str) -> bool:
    """Say whether the failure may pass."""
    return meaning(exc, path) is Meaning.TRANSIENT


def to_error(exc: Exception, path: str, tried: str) -> Exception:
    """Return a failure as FileNotFoundError, PermissionError, IsADirectoryError or StorageError.

    Args:
        exc: what a library raised.
        path: what it was asked about.
        tried: how often and how long it was asked; empty: once.
    """
    if isinstance(exc, RecordgenError):
        return exc
    status = status_of(exc)
    detail = f"HTTP {status}" if status else ""
    found = meaning(exc, path)
    if found is Meaning.MISSING:
        return FileNotFoundError(errno.ENOENT, detail, path)
    if found is Meaning.NO_FILE:
        return IsADirectoryError(path)
    if found is Meaning.FORBIDDEN:
        return PermissionError(errno.EACCES, detail, path)
    text = ": ".join(filter(None, (path, detail, f"{type(exc).__name__}: {exc}".rstrip(": "))))
    return StorageError(f"{text}; {tried}" if tried else text)


@contextmanager
def only_storage_errors(path: str, doing: str) -> Iterator[None]:
    """Turn what speaks against one file into StorageError, where there must be one.

    Args:
        path: the file or folder.
        doing: what is impossible then, such as ``cannot write``.
    """
    try:
        yield
    except OSError as exc:
        detail = f" ({exc.strerror})" if exc.strerror else ""
        if isinstance(exc, PermissionError):
            reason = f"permission denied{detail}; check your credentials and their rights"
        elif isinstance(exc, FileNotFoundError):
            reason = f"no such bucket or folder{detail}"
        else:
            reason = f"{type(exc).__name__}: {exc}"
        raise StorageError(f"{path}: {doing}: {reason}") from exc


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Turn what a library raises into what :func:`to_error` makes of it."""
    try:
        yield
    except RecordgenError:
        raise
    except Exception as exc:
        raise to_error(exc, path, "") from exc


def meaning(exc: BaseException, path: str) -> Meaning:
    """Return what a failure to read ``path`` says."""
    if isinstance(exc, RecordgenError):
        return Meaning.LASTING
    if isinstance(exc, FileNotFoundError):
        return Meaning.MISSING
    if isinstance(exc, IsADirectoryError | NotADirectoryError):
        return Meaning.NO_FILE
    if _credentials_failed(exc):
        return Meaning.LASTING
    if _is_impossible(exc):
        return Meaning.MISSING
    status = status_of(exc)
    if status is not None:
        return _of_status(status, exc, path)
    if isinstance(exc, PermissionError) or str(exc).startswith("Forbidden: "):  # gcsfs's 403
        return Meaning.FORBIDDEN
    return _of_kind(exc, path)


def _of_status(status: int, exc: BaseException, path: str) -> Meaning:
    if status in TRANSIENT_STATUS:
        return Meaning.TRANSIENT
    if status in _FORBIDDEN_STATUS:
        return Meaning.FORBIDDEN
    if status in _MISSING_STATUS:
        return Meaning.MISSING
    # Any other 4xx says of a web page that it cannot be had, and 400 of an object of Google's. S3
    # says 400 of credentials and regions, too.
    is_named = 400 <= status < 500 if is_http(path) else status == 400 and _is_gcs(path)
    return Meaning.MISSING if is_named and "requester pays" not in str(exc) else Meaning.LASTING


def _of_kind(exc: BaseException, path: str) -> Meaning:
    causes = list(_causes(exc))
    names = {name for item in causes for name in _names(item)}
    if any(isinstance(item, ssl.SSLCertVerificationError) for item in causes):
        return Meaning.LASTING
    if is_http(path) and any(_is_unknown_host(item) for item in causes):
        return Meaning.MISSING
    if names & _TRANSIENT_NAMES or isinstance(exc, _TRANSIENT_KINDS):
        return Meaning.TRANSIENT
    return Meaning.LASTING


def status_of(exc: BaseException) -> int | None:
    """Return the HTTP status that an exception, or what it was made of, carries."""
    if _names(exc) & _TRANSIENT_NAMES:
        return None  # aiohttp calls a broken connection a 400 of the parser's
    for item in _causes(exc):
        response = getattr(item, "response", None)
        if isinstance(response, dict):  # botocore
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:  # aiohttp; azure; gcsfs
            status = next(
                (
                    value
                    for name in ("status", "status_code", "code")
                    if (value := getattr(item, name, None)) is not None
                ),
                None,
            )
        text = str(status)
        if text.isdecimal() and 400 <= int(text) < 600:
            return int(text)
    return None


def _credentials_failed(exc: BaseException) -> bool:
    """Say whether it is us whom the storage does not know, rather than the object."""
    for item in _causes(exc):
        response = getattr(item, "response", None)
        if isinstance(response, dict):
            return response.get("Error", {}).get("Code") in _CREDENTIAL_CODES
    text = str(exc).lower()
    return any(said in text for said in _CREDENTIAL_TEXTS)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it was made of."""
    following: BaseException | None = exc
    while following is not None:
        yield following
        inner = getattr(following, "os_error", None)  # aiohttp's, for a failing connection
        if isinstance(inner, BaseException):
            yield inner
        following = following.__cause__


def _is_gcs(path: str) -> bool:
    return path.startswith(("gs://", "gcs://"))


def _names(exc: BaseException) -> set[str]:
    return {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(exc).__mro__}


def _is_unknown_host(exc: BaseException) -> bool:
    return isinstance(exc, socket.gaierror) and exc.errno in (
        socket.EAI_NONAME,
        getattr(socket, "EAI_NODATA", socket.EAI_NONAME),
    )


def _is_impossible(exc: BaseException) -> bool:
    """Say whether a bucket, object or host cannot have such a name."""
    if "requester pays" in str(exc):  # gcsfs's ValueError
        return False
    return (
        (isinstance(exc, UnicodeError) and not isinstance(exc, UnicodeDecodeError))
        or (isinstance(exc, ValueError) and str(exc).startswith(_IMPOSSIBLE_TEXTS))
        or bool(_names(exc) & _IMPOSSIBLE_NAMES)
        or (isinstance(exc, OSError) and exc.errno == errno.ENAMETOOLONG)
    )
