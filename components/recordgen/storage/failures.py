"""Classify the exceptions of storage libraries: missing, forbidden, transient, lasting.

Each library has its own exceptions, and any library may not be installed. So exceptions are
classified by their HTTP status, or by the names of their classes if they carry none.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from enum import Enum

from recordgen.errors import RecordgenError
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
    RecordgenError: Meaning.LASTING,
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
