"""fsspec's file systems, set up for many requests at once and for one place that retries.

Uploads in parts are repeated by gcsfs and botocore: only they know which part failed. Every other
request is repeated by :mod:`recordgen.storage.retries`, as theirs do not do for many at once:

    botocore  not a plain 429; 100 repetitions for all requests of a client together, then none
    gcsfs     six attempts in half a minute, also where a certificate is not valid; neither the
              number nor the waits can be set, and they cannot be interrupted
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from fsspec import available_protocols, config, get_filesystem_class, registry
from fsspec.core import strip_protocol, url_to_fs

from recordgen.errors import StorageError, UnknownSchemeError
from recordgen.storage.failures import TRANSIENT_STATUS, PassingFailure
from recordgen.storage.paths import is_chained, scheme_of
from recordgen.storage.retries import RetryPolicy
from recordgen.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

#: How many requests may be under way at once.
CONNECTIONS = 64

# A change of one of these asks for other credentials or another endpoint.
_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_PROFILE",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "STORAGE_EMULATOR_HOST",
)

# Set by users of zonal buckets. gcsfs asks before each request of what kind a bucket is, and asks
# again for one that it may not ask about: two requests for every image.
_ZONAL_BUCKETS = "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"

_GCS = ("gs", "gcs")
_S3 = ("s3", "s3a")

# What asks for one version of an object: #1650000000000000, ?generation=…, ?versionId=…
_VERSION = re.compile(r"#\d+\Z|[?&](generation|versionId)=")


@dataclass(frozen=True)
class _Made:
    """The file systems of one process. fsspec would make one, and log in, for each thread."""

    filesystems: dict[object, Any] = field(default_factory=dict)
    making: Lock = field(default_factory=Lock)

    def get(self, key: object, make: Callable[[], Any]) -> Any:
        with self.making:
            if key not in self.filesystems:
                self.filesystems[key] = make()
            return self.filesystems[key]


# By process: neither their connections nor a lock that is held survive a fork.
_made: dict[int, _Made] = {}


def is_known(path: str) -> bool:
    """Say whether there is a storage for a URL."""
    scheme = scheme_of(path).rsplit("::", 1)[-1]
    # fsspec itself takes g:// for a Windows drive.
    return scheme in available_protocols() or scheme in registry


def names_version(path: str) -> bool:
    """Say whether the URL of an object of Google's or Amazon's asks for one version of it."""
    return _VERSION.search(path) is not None


def filesystem_of(path: str, *, retrying: bool = False) -> tuple[Any, str]:
    """Return the file system for a URL, and the path in it.

    Args:
        path: the URL.
        retrying: whether requests are repeated, as an upload in parts needs it.

    Raises:
        UnknownSchemeError: fsspec does not know the scheme.
        StorageError: it needs a package.
    """
    scheme = scheme_of(path)
    if not is_known(path):
        raise UnknownSchemeError(f"{path}: no storage is known for {scheme}://")
    try:
        if is_chained(path):
            fs, inner = url_to_fs(path)
            return fs, inner
        is_store = scheme in (*_GCS, *_S3)
        # Elsewhere a URL's host, user or account says with whom to connect.
        host = "" if is_store else path.partition("://")[2].partition("/")[0]
        root = f"{scheme}://{host}"
        versions = is_store and names_version(path)
        policy = RetryPolicy.from_environment()
        environment = tuple(map(os.environ.get, _ENVIRONMENT))
        key = (root, versions, retrying, policy, environment)
        made = _made.setdefault(os.getpid(), _Made())
        fs = made.get(key, lambda: _make(root, policy, versions=versions, retrying=retrying))
        return fs, strip_protocol(path)
    except ImportError as exc:
        extra = "gcs" if scheme in _GCS else "s3" if scheme in _S3 else ""
        hint = f"; pip install 'recordgen[{extra}]'" if extra else ""
        raise StorageError(f"{path}: {scheme}:// needs a package: {exc}{hint}") from exc


def _make(root: str, policy: RetryPolicy, *, versions: bool, retrying: bool) -> Any:
    scheme = scheme_of(root)
    # Listings change under us: we write into what we list.
    settings = {"use_listings_cache": False, "skip_instance_cache": True}
    if versions:
        settings["version_aware"] = True
    try:
        if scheme in _GCS:
            return _gcs(scheme, settings, policy, retrying=retrying)
        if scheme in _S3:
            return _s3(scheme, settings, policy, attempts=policy.attempts if retrying else 1)
        return url_to_fs(root)[0]
    except (ValueError, OSError) as exc:  # a wrong setting, or a file of certificates or keys
        raise StorageError(f"{scheme}:// cannot be used: {type(exc).__name__}: {exc}") from exc


def _gcs(scheme: str, settings: dict[str, bool], policy: RetryPolicy, *, retrying: bool) -> Any:
    from aiohttp import ClientTimeout
    from gcsfs.core import GCSFileSystem

    kind = get_filesystem_class(scheme) if os.environ.get(_ZONAL_BUCKETS) else GCSFileSystem
    seconds = policy.timeout_seconds
    session: dict[str, Any] = {
        "timeout": ClientTimeout(total=None, sock_connect=seconds, sock_read=seconds)
    }
    if not retrying:
        session["middlewares"] = (_fail_at_once,)
    return kind(session_kwargs=session, **settings)


async def _fail_at_once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Answer a request of gcsfs; raise what it would repeat as an error that it does not know."""
    from aiohttp import ClientError

    try:
        response = await send(request)
        await response.read()
    except ClientError as exc:
        raise PassingFailure(f"{type(exc).__name__}: {exc}") from exc
    if response.status in TRANSIENT_STATUS:
        raise PassingFailure(response.reason or "", response.status)
    return response


def _s3(scheme: str, settings: dict[str, bool], policy: RetryPolicy, *, attempts: int) -> Any:
    ours = {
        "retries": {"mode": "standard", "total_max_attempts": attempts},
        "max_pool_connections": CONNECTIONS,
        "read_timeout": policy.timeout_seconds,
        # botocore would put together a long one for every request, a tenth of its time.
        "user_agent": f"recordgen/{__version__}",
    }
    theirs = config.conf.get("s3", {}).get("config_kwargs", {})
    fs = get_filesystem_class(scheme)(config_kwargs={**ours, **theirs}, **settings)
    fs.retries = 1  # s3fs's own, around those of botocore
    fs.connect()  # which many threads at once would do many times
    return fs
