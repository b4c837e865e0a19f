"""What the exceptions of storage libraries mean: missing, forbidden, passing, lasting.

Each library has its own exceptions, and any of them may be missing. Exceptions are classified by
their HTTP status, or by name where they carry none.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from recordgen.errors import RecordgenError, ResponseError, StorageError, UnreachableError
from recordgen.masking import masked
from recordgen.rejects import RejectCode
from recordgen.storage.paths import is_http


class Meaning(Enum):
    """What a failure says."""

    MISSING = "there is no such file"
    NO_FILE = "there is something, but no file"
    FORBIDDEN = "it may not be read"
    REFUSED = "the server refuses such a request"
    MALFORMED = "what came is no answer"
    TRANSIENT = "it may pass"
    UNTRUSTED = "there is no connection that can be trusted"
    LASTING = "it will not pass"


class PassingFailure(Exception):
    """A request failed in a way that may pass; no library knows this class.

    Attributes:
        status: the HTTP status; None: there was no answer.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


# What a failure says, by the status that it carries; what is missing here depends on the storage.
_BY_STATUS = {
    **dict.fromkeys((408, 425, 429, 500, 502, 503, 504, 507, 508, 509, 529), Meaning.TRANSIENT),
    **dict.fromkeys((401, 402, 403, 451), Meaning.FORBIDDEN),
    **dict.fromkeys((404, 410), Meaning.MISSING),
}

#: A server answers so when it may answer otherwise next time.
TRANSIENT_STATUS = {status for status, said in _BY_STATUS.items() if said is Meaning.TRANSIENT}

# By a library's class: a connection that failed, …
_BY_NAME = {
    "aiohttp.ClientConnectionError": Meaning.TRANSIENT,
    "aiohttp.ClientPayloadError": Meaning.TRANSIENT,
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
    # … or a name that cannot be: the row's fault.
    "aiohttp.InvalidURL": Meaning.MISSING,
    "botocore.ParamValidationError": Meaning.MISSING,
}

# By one of Python's classes. A ValueError that is not here may be a setting's.
_BY_CLASS: dict[type, Meaning] = {
    RecordgenError: Meaning.LASTING,
    PassingFailure: Meaning.TRANSIENT,
    FileNotFoundError: Meaning.MISSING,
    IsADirectoryError: Meaning.NO_FILE,
    NotADirectoryError: Meaning.NO_FILE,
    PermissionError: Meaning.FORBIDDEN,
    UnicodeError: Meaning.MISSING,  # the name of a bucket, object or host
    # The answer was cut, or comes from a proxy.
    UnicodeDecodeError: Meaning.TRANSIENT,
    json.JSONDecodeError: Meaning.TRANSIENT,
    EOFError: Meaning.TRANSIENT,
    OSError: Meaning.TRANSIENT,
    asyncio.TimeoutError: Meaning.TRANSIENT,
}

# What aiohttp's parser says of a header or a status that is none; it calls it a 400 of the server.
_BAD_MESSAGE = "aiohttp.BadHttpMessage"

_IMPOSSIBLE_TEXTS = ("Bad Request: ", "embedded null byte")  # gcsfs's 400; the system's
# botocore's bucket name of s3://KEY:SECRET@bucket: a secret without a scheme before it.
_USERINFO = re.compile(r"[^\s/:@]+:[^\s/@]+@")

_FORBIDDEN_TEXT = "Forbidden: "  # gcsfs's 403

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


def is_transient(exc: BaseException, path: str) -> bool:
    """Say whether the failure may pass."""
    return meaning(exc, path) is Meaning.TRANSIENT


def to_error(exc: Exception, path: str, tried: str) -> Exception:
    """Return a failure as FileNotFoundError, PermissionError, IsADirectoryError or a StorageError.

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
        return FileNotFoundError(errno.ENOENT, detail, masked(path))
    if found is Meaning.NO_FILE:
        return IsADirectoryError(masked(path))
    if found is Meaning.FORBIDDEN:
        return PermissionError(errno.EACCES, detail, masked(path))
    reason = f"{type(exc).__name__}: {exc}".rstrip(": ")
    if isinstance(exc, asyncio.TimeoutError) and not str(exc):
        reason = "timed out"
    text = ": ".join(filter(None, (path, detail, reason)))
    if tried:
        text = f"{text}; {tried}"
    if found in (Meaning.TRANSIENT, Meaning.UNTRUSTED):
        return UnreachableError(text)
    if found in _RESPONSE_CODES:
        return ResponseError(text, _RESPONSE_CODES[found].value)
    return StorageError(text)


_RESPONSE_CODES = {
    Meaning.REFUSED: RejectCode.HTTP_ERROR,
    Meaning.MALFORMED: RejectCode.BAD_RESPONSE,
}


def shown_cause(exc: Exception) -> Exception | None:
    """Return what a traceback may show of an error's cause; None: its text may hold a secret."""
    text = str(exc)
    return None if _USERINFO.search(text) or masked(text) != text else exc


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
    except Exception as exc:  # noqa: BLE001 -- whatever a library raises is mapped
        raise to_error(exc, path, "") from shown_cause(exc)


def meaning(exc: BaseException, path: str) -> Meaning:
    """Return what a failure to read ``path`` says."""
    said = _by_type(exc)
    if said in (Meaning.MISSING, Meaning.NO_FILE, Meaning.LASTING):
        return said
    if _credentials_failed(exc):
        return Meaning.LASTING
    if _is_impossible(exc):
        return Meaning.MISSING
    causes = list(_causes(exc))
    status = status_of(exc)
    if status is not None:
        is_parsed = not any(_BAD_MESSAGE in map(_name, type(item).__mro__) for item in causes)
        return _of_status(status, exc, path) if is_parsed else Meaning.MALFORMED
    if said is Meaning.FORBIDDEN or str(exc).startswith(_FORBIDDEN_TEXT):
        return Meaning.FORBIDDEN
    if any(isinstance(item, ssl.SSLCertVerificationError) for item in causes):
        return Meaning.UNTRUSTED
    if is_http(path) and any(map(_is_unknown_host, causes)):
        return Meaning.MISSING
    if any(map(_is_lost_connection, causes)):
        return Meaning.TRANSIENT
    return said or Meaning.LASTING


def _of_status(status: int, exc: BaseException, path: str) -> Meaning:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if is_http(path):
        return Meaning.REFUSED if status < 500 else Meaning.TRANSIENT
    # Google says 400 of an object that there cannot be; S3 says it of credentials and regions, too.
    is_gcs = path.startswith(("gs://", "gcs://"))
    is_named = status == 400 and is_gcs and "requester pays" not in str(exc)
    return Meaning.MISSING if is_named else Meaning.LASTING


def _by_type(exc: BaseException) -> Meaning | None:
    """Return what the first class says, from the exception's own on, that a table names."""
    for kind in type(exc).__mro__:
        if found := _BY_CLASS.get(kind) or _BY_NAME.get(_name(kind)):
            return found
    return None


def _is_lost_connection(exc: BaseException) -> bool:
    return any(_BY_NAME.get(_name(kind)) is Meaning.TRANSIENT for kind in type(exc).__mro__)


def status_of(exc: BaseException) -> int | None:
    """Return the HTTP status that an exception, or what it was made of, carries."""
    for item in _causes(exc):
        if _is_lost_connection(item):
            return None  # aiohttp calls a broken connection a 400 of the parser's
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


def _name(kind: type) -> str:
    """Return a class's package and name: ``aiohttp.InvalidURL``, in whichever module it is."""
    return f"{kind.__module__.split('.')[0]}.{kind.__name__}"


def _is_unknown_host(exc: BaseException) -> bool:
    return isinstance(exc, socket.gaierror) and exc.errno in (
        socket.EAI_NONAME,
        getattr(socket, "EAI_NODATA", socket.EAI_NONAME),
    )


def _is_impossible(exc: BaseException) -> bool:
    """Say whether a bucket, object or host cannot have such a name."""
    if "requester pays" in str(exc):  # gcsfs's ValueError
        return False
    return (isinstance(exc, ValueError) and str(exc).startswith(_IMPOSSIBLE_TEXTS)) or (
        isinstance(exc, OSError) and exc.errno == errno.ENAMETOOLONG
    )
