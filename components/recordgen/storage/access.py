"""The terms of a request, and access rules for rows: which files they may reach.

An import file is not trusted:

    import file       its rows reach
    local, DataFrame  local files and object stores
    gs://, s3://, …   the same kind of storage, never local files
    https://          https://, at public addresses or on the import file's own server

The option ``allow`` adds schemes, but never the local one. Folders and URL prefixes in it then
restrict access to them. Rows of any import file reach the folder or URL of ``image_root``. In a
pipeline step, rows are confined, because the author of the import file rarely has the rights of the
step:

    import file       its rows reach, in addition to prefixes
    /data/a.csv       /data/…
    gs://b/c/a.csv    gs://b/…
    https://host/a    https://host/…

Nothing here uses the network: the address of a host is checked when a connection is made.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import NamedTuple
from urllib.parse import urlsplit

from recordgen.errors import FileTooLargeError, StorageError, UnreachableError, UsageError
from recordgen.messages import listed
from recordgen.messages.masking import without_secrets
from recordgen.rejects import Reject, RejectCode
from recordgen.storage import paths


class FileInfo(NamedTuple):
    """Size and version of a regular file.

    Attributes:
        size: in bytes.
        version: a text that changes when the file does: its mtime, generation or etag.
    """

    size: int
    version: str


def too_large(path: str, size: int) -> FileTooLargeError:
    """Return the error for a file that exceeds its size limit: it has at least ``size`` bytes."""
    return FileTooLargeError(f"{path}: too large: {size:,} bytes or more", size)


class UrlPolicy:
    """Rules for http requests; this class has the rules for files that the user named."""

    def refusal(self, url: str) -> str | None:
        """Return why a redirect to ``url`` must not be followed, else None."""
        if url.startswith(("http://", "https://")):
            return None
        return "only http and https are followed"

    def may_be_private(self, url: str, *, redirected: bool) -> bool:
        """Return whether ``url`` may be at a private address."""
        return not redirected

    def may_get_credentials(self, url: str, *, redirected: bool) -> bool:
        """Return whether configured headers and credentials may be sent to ``url``."""
        return not redirected


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Policy and limits of a request.

    Attributes:
        policy: rules for http requests.
        stop: once it is set, the request is not retried.
        at_most: largest size of interest in bytes; ``info`` may stop counting above it.
        deadline: time of ``time.monotonic`` at which the request fails, retries included; None if
            unlimited.
    """

    policy: UrlPolicy = UrlPolicy()  # noqa: RUF009 it has no state
    stop: Event | None = None
    at_most: int | None = None
    deadline: float | None = None


#: A request that only the number of attempts limits.
ANY_REQUEST = RequestContext()

_retrying = ContextVar("_retrying", default=True)


@contextmanager
def without_retries() -> Iterator[None]:
    """Do not retry requests of this thread."""
    token = _retrying.set(False)
    try:
        yield
    finally:
        _retrying.reset(token)


def may_retry() -> bool:
    """Return whether failed requests of this thread may be retried."""
    return _retrying.get()


@contextmanager
def only_storage_errors(path: str, doing: str) -> Iterator[None]:
    """Turn any OSError into StorageError; ``doing`` is the failure, such as ``cannot write``."""
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


# --- what rows may reach -------------------------------------------------------------------------

# Words of the option that are schemes; others are written ``name://``. A word that is neither must
# not be taken for one: it may be a folder, which was meant to restrict what rows reach.
_KNOWN_SCHEMES = (*paths.OBJECT_STORES, "http", "https", "ftp", "sftp", "hdfs", "memory")

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_AMBIGUOUS = (
    "a path with '..' or an ambiguous URL cannot be compared with what is allowed; write it plainly"
)
_LOCAL_SCHEMES = ("file", "local", "asynclocal")


@dataclass(frozen=True, slots=True)
class Access:
    """Access rules: what rows may reach.

    Attributes:
        schemes: schemes allowed in addition to the default ones.
        prefixes: folders and URL prefixes; empty: no restriction.
        confined: rows reach only the folder, bucket or server of their import file, and prefixes.
        image_root: folder or URL where the paths of rows start, which they reach in any case; empty
            if it is that of their import file.
    """

    schemes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    confined: bool = False
    image_root: str = ""
    _roots: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    _images: tuple[str, ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_roots", tuple(map(_parse_root, self.prefixes)))
        images = _parse_image_root(self.image_root) if self.image_root else None
        object.__setattr__(self, "_images", images)

    @classmethod
    def of(cls, words: Sequence[str], *, confined: bool, image_root: str) -> Access:
        """Decode the option ``allow``: ``https``, ``hdfs://``, ``gs://bucket``, ``./images``.

        Raises:
            UsageError: a word is neither a scheme nor a prefix; or the root of images is no plain
                folder or URL.
        """
        schemes = [word.removesuffix("://") for word in words if _is_scheme(word)]
        for scheme in schemes:
            if scheme in _LOCAL_SCHEMES or not _SCHEME.fullmatch(scheme):
                raise UsageError(
                    f"allow must name schemes of URLs, such as https (got {scheme!r}); only local "
                    f"import files may reach local files"
                )
        prefixes = tuple(word for word in words if not _is_scheme(word))
        return cls(tuple(schemes), prefixes, confined, image_root)

    def refusal(self, path: str, source: str) -> str | None:
        """Return why a row of the import file ``source`` may not reach ``path``, else None."""
        if (
            not self.confined
            and not self._roots
            and paths.is_local(path)
            and paths.is_local(source)
        ):
            return None  # by far the most frequent case
        if self._is_below_images(path):
            return None
        if self.confined:
            return self._confined_refusal(path, source)
        return self._scheme_refusal(path, source) or self._root_refusal(path)

    def may_be_private(self, url: str, source: str, *, redirected: bool) -> bool:
        """Return whether an http URL that is not refused may be at a private address.

        It may if a prefix contains it. Unless it is the target of a redirect, it also may if
        the user allowed its scheme or if it is on the import file's own server.
        """
        if self._is_below_images(url):
            return True
        if self._roots:
            is_named = self._root_refusal(url) is None
            if is_named or not self.confined:
                return is_named
        if redirected:
            return False
        return paths.scheme_of(url) in _with_https(self.schemes) or (
            paths.is_http(source) and paths.origin_of(url) == paths.origin_of(source)
        )

    def may_get_credentials(self, url: str, source: str) -> bool:
        """Return whether configured headers and credentials may be sent to an http URL.

        They may if a prefix contains it or if it is on the import file's own server.
        """
        if self._is_below_images(url) or (self._roots and self._root_refusal(url) is None):
            return True
        return paths.is_http(source) and paths.origin_of(url) == paths.origin_of(source)

    def _is_below_images(self, path: str) -> bool:
        """Return whether a path is below the root of images; links are followed."""
        if self._images is None or paths.is_chained(path):
            return False
        place = paths.place_of(path)
        return place is not None and place[: len(self._images)] == self._images

    def _scheme_refusal(self, path: str, source: str) -> str | None:
        scheme, own = paths.scheme_of(path), paths.scheme_of(source)
        if paths.is_chained(path):
            return "a chain of URLs is not followed; copy the files to a folder or bucket"
        if scheme == "file":
            if own == "file":
                return None
            return (
                f"rows of an import file on {own}:// reach no local files; if you trust it, copy "
                f"it to this machine"
            )
        anyway = paths.OBJECT_STORES if own == "file" else (own,)
        allowed = {paths.FAMILY.get(name, name) for name in (*anyway, *_with_https(self.schemes))}
        if "http" in anyway:
            allowed.add("https")
        if paths.FAMILY.get(scheme, scheme) in allowed:
            return None
        if scheme in _LOCAL_SCHEMES:
            return f"{scheme}:// is not supported; write only the path"
        where = "a local import file" if own == "file" else f"an import file on {own}://"
        return f"rows of {where} may not reach {scheme}://; --allow {scheme} allows it"

    def _root_refusal(self, path: str) -> str | None:
        if not self._roots:
            return None
        place = paths.place_of(path)
        if place is None:
            return _AMBIGUOUS
        if any(place[: len(root)] == root for root in self._roots):
            return None
        return (
            f"it lies outside of {', '.join(self.prefixes)}; allow it with another --allow PREFIX"
        )

    def _confined_refusal(self, path: str, source: str) -> str | None:
        scheme = paths.scheme_of(path)
        if (
            paths.is_chained(path)
            or scheme in _LOCAL_SCHEMES[1:]
            or paths.is_local(path) > paths.is_local(source)
        ):
            return self._scheme_refusal(path, source)
        place = paths.place_of(path)
        if place is None:
            return _AMBIGUOUS
        own = paths.own_places(source)
        if any(place[: len(root)] == root for root in (*own, *self._roots)):
            return None
        if not self._roots and scheme in _with_https(self.schemes):
            return None
        return (
            f"in a pipeline step, rows reach only {paths.shown(own[0])} and what allow "
            f"names; allow={paths.shown(paths.wider(place))} allows it"
        )


@dataclass(frozen=True, slots=True)
class RowUrlPolicy(UrlPolicy):
    """The URL policy of requests for the rows of one import file."""

    access: Access
    source: str

    def refusal(self, url: str) -> str | None:  # noqa: D102
        return UrlPolicy.refusal(self, url) or self.access.refusal(url, self.source)

    def may_be_private(self, url: str, *, redirected: bool) -> bool:  # noqa: D102
        return self.access.may_be_private(url, self.source, redirected=redirected)

    def may_get_credentials(self, url: str, *, redirected: bool) -> bool:  # noqa: D102
        return not redirected and self.access.may_get_credentials(url, self.source)


def resolved(word: str) -> str:
    """Return a word of the option ``allow`` with its folder as an absolute path.

    Raises: UsageError: it may be a folder or a scheme.
    """
    if _is_scheme(word) or not paths.is_local(word):
        return word
    if _SCHEME.fullmatch(word) and word not in _LOCAL_SCHEMES:
        raise UsageError(
            f"allow: write ./{word} for a folder, or {word}:// for a scheme (got {word!r})"
        )
    return paths.absolute(paths.normal(word)) if word else word


def _is_scheme(word: str) -> bool:
    return word.endswith("://") or word in (*_KNOWN_SCHEMES, *_LOCAL_SCHEMES)


def _with_https(schemes: tuple[str, ...]) -> tuple[str, ...]:
    """Add https if http is there: a user who trusts http trusts https."""
    return (*schemes, "https") if "http" in schemes else schemes


def _parse_root(root: str) -> tuple[str, ...]:
    place = paths.place_of(root) if root else None
    if place is None or paths.is_chained(root) or (paths.is_http(root) and urlsplit(root).query):
        raise UsageError(
            f"allow must name schemes such as https, and folders or plain URL prefixes such as "
            f"gs://bucket/images (got {root!r})"
        )
    return place


def _parse_image_root(root: str) -> tuple[str, ...]:
    place = paths.place_of(root)
    if place is None or paths.is_chained(root) or without_secrets(root) != root:
        raise UsageError(
            f"image_root must be a folder or a plain URL, such as images/ or gs://bucket/images "
            f"(got {without_secrets(root)!r})"
        )
    return place


# --- hosts that keep failing ---------------------------------------------------------------------

# A host that keeps failing gets no requests for a while, in each process:
#
#     request ─fails, after all retries──▶ 16 in a row ─▶ no requests for 60 s, then one trial,
#             ─gets any response─────────▶ 0 in a row     no requests for 120 s, …
#
# A failure counts only if its request began after the host's last response: bad files among good
# ones on the same host fail late, after their retries, and must not count against the host.

#: Failures in a row after which a host gets no more requests.
MOST_FAILURES = 16

#: Length of the first pause without requests; each further failure doubles it.
PAUSE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class _Host:
    """The state of a host: requests that failed since its last response."""

    __slots__ = ("_answered", "_closed_until", "_failures", "_lock", "_pause", "name")  # many

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = Lock()
        self._failures = 0
        self._answered = 0.0
        self._pause = PAUSE_SECONDS
        self._closed_until = 0.0

    def is_suspect(self, path: str) -> bool:
        """Return whether a request is the single trial of a failing host after a pause.

        Raises: UnreachableError: the host is in a pause.
        """
        with self._lock:
            if self._failures < MOST_FAILURES:
                return False
            now = time.monotonic()
            if now < self._closed_until:
                raise UnreachableError(
                    f"{path}: not requested, because {self._failures} requests to {self.name} "
                    f"failed in a row"
                )
            self._close(now)
            return True

    def note_answer(self) -> None:
        """Note that the host has responded."""
        with self._lock:
            self._failures, self._pause = 0, PAUSE_SECONDS
            self._answered = time.monotonic()

    def note_failure(self, began: float) -> None:
        """Note a final failure of a request that began at this time of ``time.monotonic``."""
        with self._lock:
            if began < self._answered:
                return
            self._failures += 1
            if self._failures == MOST_FAILURES:
                self._close(time.monotonic())
                _log.warning(
                    "%s: %d requests in a row failed; requests to it are paused, except for an "
                    "occasional trial",
                    self.name,
                    self._failures,
                )

    def _close(self, now: float) -> None:
        self._closed_until = now + self._pause
        self._pause *= 2


# By process: each worker process learns by itself, and a lock that is held during a fork would
# never be released in the child.
_hosts: dict[tuple[int, str], _Host] = {}


def forget_failures() -> None:
    """Forget all failures, so that a new run tries every host."""
    _hosts.clear()


@contextmanager
def watched(path: str) -> Iterator[None]:
    """Count the outcome of a remote request, including its retries, for its host.

    Raises: UnreachableError: the request was not sent, because the host keeps failing.
    """
    name = host_of(path)
    host = _hosts.setdefault((os.getpid(), name), _Host(name))
    is_trial = host.is_suspect(path)
    began = time.monotonic()
    try:
        with without_retries() if is_trial else nullcontext():
            yield
    except UnreachableError:
        host.note_failure(began)
        raise
    except (OSError, StorageError):  # a missing file, for example: the host has responded
        host.note_answer()
        raise
    host.note_answer()


def host_of(path: str) -> str:
    """Return the server or bucket of a URL: ``https://me:pw@host/1.jpg`` → ``https://host``.

    ``gs://bucket/1.jpg`` → ``gs://bucket``; a local path → ``file://``.
    """
    if not paths.is_http(path):
        rest = without_secrets(path).partition("://")[2]
        return f"{paths.scheme_of(path)}://{rest.partition('/')[0]}"
    scheme, host, port = paths.origin_of(path)
    return f"{scheme}://{host}" + ("" if port == paths.PORTS.get(scheme) else f":{port}")


def unreachable_text(rejects: Iterable[Reject]) -> str:
    """Return the number of unreachable rows by host, most first: ``https://a 412, https://b 3``."""
    counts = Counter(
        host_of(paths.resolve(item.uri, item.source))
        for item in rejects
        if item.code == RejectCode.UNREACHABLE.value
    )
    return listed([f"{name} {count:,}" for name, count in counts.most_common()], str)
