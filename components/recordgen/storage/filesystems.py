"""fsspec's file systems, set up for many concurrent requests and a single place that retries.

gcsfs and botocore retry multipart uploads, as only they know which part failed. All other requests
are retried by :mod:`recordgen.storage.retries`, as the libraries' retries do not suit many
concurrent requests:

    botocore  does not retry a plain 429; 100 retries for all requests of a client, then none
    gcsfs     six attempts in half a minute, even for an invalid certificate; neither the number
              nor the waits can be set, and the waits cannot be interrupted
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

from recordgen.errors import StorageError, UnknownSchemeError, install
from recordgen.storage.paths import is_chained, scheme_of
from recordgen.storage.retries import TRANSIENT_STATUS, RetryPolicy, TransientFailure
from recordgen.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

#: Most concurrent requests.
CONNECTIONS = 64

# Variables that choose credentials or an endpoint: a change needs a new file system.
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

# Set by users of zonal buckets. With it, gcsfs looks up the kind of the bucket before each request,
# and does not cache a lookup that is forbidden: two requests for every image.
_ZONAL_BUCKETS = "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"

_GCS = ("gs", "gcs")
_S3 = ("s3", "s3a")

# The end of a URL that names one version of an object: #1650000000000000, ?generation=…,
# ?versionId=…
_VERSION = re.compile(r"#\d+\Z|[?&](generation|versionId)=")


@dataclass(frozen=True)
class _FileSystems:
    """The file systems of one process. fsspec would create one, and log in, for each thread."""

    filesystems: dict[object, Any] = field(default_factory=dict)
    making: Lock = field(default_factory=Lock)

    def get(self, key: object, make: Callable[[], Any]) -> Any:
        with self.making:
            if key not in self.filesystems:
                self.filesystems[key] = make()
            return self.filesystems[key]


# By process: neither connections nor a held lock survive a fork.
_filesystems: dict[int, _FileSystems] = {}


def is_known(path: str) -> bool:
    """Return whether there is a storage for a URL."""
    scheme = scheme_of(path).rsplit("::", 1)[-1]
    # fsspec itself would take g:// for a Windows drive.
    return scheme in available_protocols() or scheme in registry


def names_version(path: str) -> bool:
    """Return whether the URL of a gs:// or s3:// object names one version of it."""
    return _VERSION.search(path) is not None


def filesystem_of(path: str, *, retrying: bool = False) -> tuple[Any, str]:
    """Return the file system for a URL, and the path in it.

    With ``retrying``, the library retries requests, as multipart uploads need.

    Raises: UnknownSchemeError: fsspec does not know the scheme; StorageError: it needs a package.
    """
    scheme = scheme_of(path)
    if not is_known(path):
        raise UnknownSchemeError(f"{path}: no storage is known for {scheme}://")
    try:
        if is_chained(path):
            fs, inner = url_to_fs(path)
            return fs, inner
        is_store = scheme in (*_GCS, *_S3)
        # In other URLs the host, user or account selects the server.
        host = "" if is_store else path.partition("://")[2].partition("/")[0]
        root = f"{scheme}://{host}"
        versions = is_store and names_version(path)
        policy = RetryPolicy.from_environment()
        environment = tuple(map(os.environ.get, _ENVIRONMENT))
        key = (root, versions, retrying, policy, environment)
        made = _filesystems.setdefault(os.getpid(), _FileSystems())
        fs = made.get(key, lambda: _make(root, policy, versions=versions, retrying=retrying))
        return fs, strip_protocol(path)
    except ImportError as exc:
        extra = "gcs" if scheme in _GCS else "s3" if scheme in _S3 else ""
        hint = f"; {install(extra)}" if extra else ""
        raise StorageError(f"{path}: {scheme}:// needs a package: {exc}{hint}") from exc


def _make(root: str, policy: RetryPolicy, *, versions: bool, retrying: bool) -> Any:
    scheme = scheme_of(root)
    # No cache: we write into the folders that we list.
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
    """Send a request of gcsfs; raise failures that it would retry as an error it does not know."""
    from aiohttp import ClientError

    try:
        response = await send(request)
        await response.read()
    except ClientError as exc:
        raise TransientFailure(f"{type(exc).__name__}: {exc}") from exc
    if response.status in TRANSIENT_STATUS:
        raise TransientFailure(response.reason or "", response.status)
    return response


def _s3(scheme: str, settings: dict[str, bool], policy: RetryPolicy, *, attempts: int) -> Any:
    ours = {
        "retries": {"mode": "standard", "total_max_attempts": attempts},
        "max_pool_connections": CONNECTIONS,
        "read_timeout": policy.timeout_seconds,
        # botocore would build a long one for every request, a tenth of its time.
        "user_agent": f"recordgen/{__version__}",
    }
    theirs = config.conf.get("s3", {}).get("config_kwargs", {})
    fs = get_filesystem_class(scheme)(config_kwargs={**ours, **theirs}, **settings)
    fs.retries = 1  # s3fs's own retries, on top of botocore's
    fs.connect()  # now: otherwise each of many concurrent threads would connect
    return fs
