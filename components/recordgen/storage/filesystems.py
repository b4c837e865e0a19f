"""fsspec's file systems, set up for many requests at once and for one place that retries.

gcsfs and botocore would retry by themselves, each in its own way; below ours the waits would
multiply. So those that read do not; those that write in parts do, as only they know what to repeat.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from fsspec import available_protocols, config, get_filesystem_class, registry
from fsspec.core import url_to_fs

from recordgen.errors import StorageError, UnknownSchemeError
from recordgen.storage.paths import is_chained, scheme_of
from recordgen.storage.retries import RetryPolicy
from recordgen.version import __version__

#: How many requests may be under way at once.
CONNECTIONS = 64

# Who changes these wants other credentials or another endpoint from then on.
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

# Set by who has zonal buckets. gcsfs asks before each request of what kind a bucket is, and asks
# again for one that it may not ask about: two requests for every image.
_ZONAL_BUCKETS = "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"


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


def for_requests(path: str) -> tuple[Any, str]:
    """Return the file system for a URL and the path in it; it does not retry.

    Raises:
        UnknownSchemeError: there is none for the scheme.
        StorageError: it needs a package.
    """
    return _open(path, retrying=False)


def for_uploads(path: str) -> tuple[Any, str]:
    """Return the file system for a URL and the path in it; it retries parts of an upload.

    Raises: as :func:`for_requests`.
    """
    return _open(path, retrying=True)


def is_known(path: str) -> bool:
    """Say whether there is a storage for a URL."""
    scheme = scheme_of(path).rsplit("::", 1)[-1]
    # fsspec itself takes g:// for a Windows drive.
    return scheme in available_protocols() or scheme in registry


def _open(path: str, *, retrying: bool) -> tuple[Any, str]:
    scheme = scheme_of(path)
    if not is_known(path):
        raise UnknownSchemeError(f"{path}: no storage is known for {scheme}://")
    try:
        if is_chained(path):
            fs, inner = url_to_fs(path)
            return fs, inner
        kind = get_filesystem_class(scheme)
        settings = kind._get_kwargs_from_urls(path)
        policy = RetryPolicy.from_environment()
        environment = tuple(map(os.environ.get, _ENVIRONMENT))
        key = (kind, repr(settings), retrying, policy, environment)
        made = _made.setdefault(os.getpid(), _Made())
        fs = made.get(key, lambda: _make(kind, scheme, settings, policy, retrying=retrying))
        return fs, kind._strip_protocol(path)
    except ImportError as exc:
        raise StorageError(f"{path}: {scheme}:// needs a package: {exc}") from exc


def _make(
    kind: Any, scheme: str, settings: dict[str, Any], policy: RetryPolicy, *, retrying: bool
) -> Any:
    try:
        if scheme in ("gs", "gcs"):
            return _gcs(kind, settings, policy, retrying=retrying)
        if scheme in ("s3", "s3a"):
            return _s3(kind, settings, policy, attempts=policy.attempts if retrying else 1)
        return kind(**settings)
    except (ValueError, OSError) as exc:  # a wrong setting, or a file of certificates or keys
        raise StorageError(f"{scheme}:// cannot be used: {type(exc).__name__}: {exc}") from exc


def _gcs(kind: Any, settings: dict[str, Any], policy: RetryPolicy, *, retrying: bool) -> Any:
    from aiohttp import ClientTimeout
    from gcsfs.core import GCSFileSystem

    if not os.environ.get(_ZONAL_BUCKETS):
        kind = GCSFileSystem
    if not retrying:
        kind = _without_retries(kind)
    seconds = policy.timeout_seconds
    timeout = ClientTimeout(total=None, sock_connect=seconds, sock_read=seconds)
    # Listings change under us: we write into what we list.
    return kind(
        **{"session_kwargs": {"timeout": timeout}, **settings},
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def _without_retries(kind: Any) -> Any:
    """Return gcsfs's class with the method that it decorates with its retries, undecorated."""
    plain = getattr(kind._request, "__wrapped__", kind._request)
    return type(f"Plain{kind.__name__}", (kind,), {"_request": plain})


def _s3(kind: Any, settings: dict[str, Any], policy: RetryPolicy, *, attempts: int) -> Any:
    ours = {
        "retries": {"mode": "standard", "total_max_attempts": attempts},
        "max_pool_connections": CONNECTIONS,
        "read_timeout": policy.timeout_seconds,
        # botocore would put together a long one for every request, a tenth of its time.
        "user_agent": f"recordgen/{__version__}",
    }
    theirs = config.conf.get("s3", {}).get("config_kwargs", {})
    fs = kind(
        **settings,
        config_kwargs={**ours, **theirs},
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    fs.retries = 1  # s3fs's own, around those of botocore
    fs.connect()  # which many threads at once would do many times
    return fs
