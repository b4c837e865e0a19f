"""fsspec's file systems, set up for many requests at once and for one place that retries.

gcsfs and botocore would retry by themselves, each in its own way; below ours the waits would
multiply. So those that read do not; those that write in parts do, as only they know what to repeat.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from fsspec import available_protocols, config, get_filesystem_class, registry
from fsspec.core import url_to_fs

from recordgen.errors import StorageError, UnknownSchemeError
from recordgen.storage.paths import is_chained, scheme_of
from recordgen.storage.retries import RetryPolicy

#: How many requests may be under way at once.
CONNECTIONS = 64

# fsspec would make a file system, with its credentials, for each thread that comes first.
_making = Lock()


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
        with _making:
            if is_chained(path):
                fs, inner = url_to_fs(path)
                return fs, inner
            kind = get_filesystem_class(scheme)
            settings = kind._get_kwargs_from_urls(path)
            if scheme in ("gs", "gcs"):
                fs = _gcs(kind, settings, retrying=retrying)
            elif scheme in ("s3", "s3a"):
                fs = _s3(kind, settings, retrying=retrying)
            else:
                fs = kind(**settings)
            return fs, kind._strip_protocol(path)
    except ImportError as exc:
        raise StorageError(f"{path}: {scheme}:// needs a package: {exc}") from exc


def _gcs(kind: Any, settings: dict[str, Any], *, retrying: bool) -> Any:
    from aiohttp import ClientTimeout

    seconds = RetryPolicy.from_environment().timeout_seconds
    if not retrying:
        kind = _without_retries(kind)
    timeout = ClientTimeout(total=None, sock_connect=seconds, sock_read=seconds)
    # Listings change under us: we write into what we list.
    return kind(**{"session_kwargs": {"timeout": timeout}, **settings}, use_listings_cache=False)


_gcs_kinds: dict[Any, Any] = {}


def _without_retries(kind: Any) -> Any:
    """Return gcsfs's class with the method that it decorates with its retries, undecorated."""
    if kind not in _gcs_kinds:
        plain = getattr(kind._request, "__wrapped__", kind._request)
        _gcs_kinds[kind] = type(f"Plain{kind.__name__}", (kind,), {"_request": plain})
    return _gcs_kinds[kind]


def _s3(kind: Any, settings: dict[str, Any], *, retrying: bool) -> Any:
    policy = RetryPolicy.from_environment()
    ours = {
        "retries": {
            "mode": "standard",
            "total_max_attempts": policy.attempts if retrying else 1,
        },
        "max_pool_connections": CONNECTIONS,
        "read_timeout": policy.timeout_seconds,
    }
    theirs = config.conf.get("s3", {}).get("config_kwargs", {})
    fs = kind(**settings, config_kwargs={**ours, **theirs}, use_listings_cache=False)
    fs.retries = 1  # s3fs's own, around those of botocore
    _ = fs.s3  # connects, which many threads at once would do many times
    return fs
