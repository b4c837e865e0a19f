"""Object stores and fsspec's other storages. Every request that is safe to repeat is retried.

fsspec's file systems are set up for many concurrent requests and a single place that retries.
gcsfs and botocore retry multipart uploads, as only they know which part failed. All other requests
are retried by :mod:`recordgen.storage.retries`, as the libraries' retries do not suit many
concurrent requests:

    botocore  does not retry a plain 429; 100 retries for all requests of a client, then none
    gcsfs     six attempts in half a minute, even for an invalid certificate; neither the number
              nor the waits can be set, and the waits cannot be interrupted

Sizes and versions of objects in a folder are listed up to a thousand with each request.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, cast

from fsspec import available_protocols, config, get_filesystem_class, registry
from fsspec.asyn import AsyncFileSystem
from fsspec.core import strip_protocol, url_to_fs
from fsspec.spec import AbstractBufferedFile
from fsspec.utils import glob_translate

from recordgen.errors import StorageError, UnknownSchemeError, install
from recordgen.storage import retries
from recordgen.storage.access import (
    ANY_REQUEST,
    FileInfo,
    RequestContext,
    only_storage_errors,
    too_large,
)
from recordgen.storage.paths import OBJECT_STORES, bytes_at_once, is_chained, scheme_of
from recordgen.storage.retries import RetriedFile, RetryPolicy, retried, run_until
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
        raise retries.TransientFailure(f"{type(exc).__name__}: {exc}") from exc
    if response.status in retries.TRANSIENT_STATUS:
        raise retries.TransientFailure(response.reason or "", response.status)
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


# Keys under which fsspec's file systems return the version of an object.
_VERSION_KEYS = ("generation", "ETag", "etag", "mtime", "created")

# The URL of an object: a bucket and a name in it.
_OBJECT = re.compile(r"\w+://[^/]+/+[^/]", re.DOTALL)

_RANGE_NOT_SATISFIABLE = 416
_BUFFER_BYTES = 1 << 20

#: Part size of an upload, held in memory: stores accept parts from 5 MB, s3fs's default is 50 MB.
#: Google's needs a multiple of 256 KiB.
PART_BYTES = 16 << 20

_WRITING = "cannot write"
_MAGIC = re.compile(r"[*?\[]")


def info(path: str, context: RequestContext) -> FileInfo:
    if scheme_of(path) in OBJECT_STORES and not _OBJECT.match(path):
        raise IsADirectoryError(path)
    found = retried(partial(_file_details, path, context), path, context)
    if found["type"] != "file":
        raise IsADirectoryError(path)
    if found["size"] is None:  # a few storages do not return it
        found["size"] = len(read_bytes(path, None, context))
    return to_info(found)


def to_info(found: dict[str, Any]) -> FileInfo:
    """Return size and version from fsspec's details of a file."""
    marks = (found[key] for key in _VERSION_KEYS if key in found)
    return FileInfo(int(found["size"]), str(next(marks, "")))


def read_bytes(path: str, at_most: int | None, context: RequestContext) -> bytes:
    """Return a file's content; request at most one byte more than ``at_most``."""
    piece = {} if at_most is None else {"start": 0, "end": at_most + 1}

    def read() -> bytes:
        try:
            return _content(path, context, **piece)
        except Exception as exc:
            if retries.status_of(exc) == _RANGE_NOT_SATISFIABLE:
                return b""  # an empty file has no first byte
            raise

    data = retried(read, path, context)
    if at_most is not None and len(data) > at_most:
        raise too_large(path, len(data))
    return data


def read_range(path: str, start: int, length: int, context: RequestContext) -> bytes:
    read = partial(_content, path, context, start=start, end=start + length)
    return retried(read, path, context)


def _content(path: str, context: RequestContext, **piece: int) -> bytes:
    fs, inner = filesystem_of(path)
    return bytes(_call(fs, "cat_file", context, inner, **piece))


def open_read(path: str, context: RequestContext) -> IO[bytes]:
    """Open a file for buffered reading with retries."""

    def open_file() -> Any:
        fs, inner = filesystem_of(path)
        return fs.open(inner, "rb")

    return io.BufferedReader(RetriedFile(path, retried(open_file, path)), _BUFFER_BYTES)


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a file that appears when it is closed, and not at all after an error.

    A small file is one request. Parts of a larger one are sent during writing, and the library
    retries them; at the end, sizes are compared.
    """
    with only_storage_errors(path, _WRITING):
        file = _Upload(path)
        try:
            yield cast(IO[bytes], file)
            file.close()
        except BaseException:
            file.discard()
            raise


class _Upload(io.RawIOBase):
    """A small file in memory, or an fsspec file open for writing, whose errors name the path."""

    def __init__(self, path: str) -> None:
        self._size = 0
        self._path = path
        self._begun = io.BytesIO()
        self._file: Any = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._size += memoryview(data).nbytes
        if self._file is None and self._size <= bytes_at_once(self._path):
            return self._begun.write(data)
        if self._file is None:
            self._file = retried(partial(_create, self._path), self._path)
            self._send(self._begun.getvalue())
        return self._send(data)

    def _send(self, data: Any) -> int:
        with retries.named_errors(self._path):
            return int(self._file.write(data))

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._file is None:
            write_bytes(self._path, self._begun.getvalue())
            return
        with retries.named_errors(self._path):
            self._file.close()
        if (arrived := info(self._path, RequestContext()).size) != self._size:
            remove(self._path)
            raise StorageError(f"{self._path}: wrote {self._size} bytes, storage has {arrived}")

    def discard(self) -> None:
        """Discard the written data: closing fsspec's file would make it appear."""
        super().close()
        if isinstance(self._file, AbstractBufferedFile):
            # S3 keeps and bills the parts until the upload is aborted; in other stores they expire.
            if scheme_of(self._path) in ("s3", "s3a"):
                with suppress(Exception):
                    self._file.discard()
            self._file.closed = True
        elif self._file is not None:
            with suppress(Exception):
                self._file.close()
            with suppress(StorageError):
                remove(self._path)


def _create(path: str) -> Any:
    fs, inner = filesystem_of(path, retrying=True)
    _make_folder(fs, inner, path)
    return fs.open(inner, "wb", block_size=PART_BYTES)


def _make_folder(fs: Any, inner: str, path: str) -> None:
    # Object stores have no folders, and their libraries would create a misspelt bucket.
    if scheme_of(path) not in OBJECT_STORES:
        fs.makedirs(posixpath.dirname(inner), exist_ok=True)


def write_bytes(path: str, data: bytes) -> None:

    def write() -> None:
        fs, inner = filesystem_of(path)
        _make_folder(fs, inner, path)
        fs.pipe_file(inner, data)

    with only_storage_errors(path, _WRITING):
        retried(write, path)


def move(source: str, target: str) -> None:
    with only_storage_errors(target, _WRITING), retries.named_errors(target):
        fs, inner = filesystem_of(source)
        to = filesystem_of(target)[1]
        if scheme_of(source) in OBJECT_STORES:
            retried(partial(fs.cp_file, inner, to), target)
            remove_file(source)
        else:  # other storages may rename, which is not safe to repeat
            _make_folder(fs, to, target)
            if _MAGIC.search(inner + to) is None:
                fs.mv(inner, to)
            else:  # see _remove_exactly
                fs.cp_file(inner, to)
                fs.rm_file(inner)


def remove(path: str) -> None:

    def delete() -> None:
        fs, inner = filesystem_of(path)
        if _MAGIC.search(inner) is None:
            fs.rm(inner, recursive=True)
        else:
            _remove_exactly(fs, fs.info(inner), is_store=scheme_of(path) in OBJECT_STORES)

    with only_storage_errors(path, _WRITING), suppress(FileNotFoundError):
        retried(delete, path)


def remove_file(path: str) -> None:
    if scheme_of(path) not in OBJECT_STORES:  # a few other storages only have rm()
        remove(path)
        return
    with only_storage_errors(path, _WRITING), suppress(FileNotFoundError):
        fs, inner = filesystem_of(path)
        retried(partial(fs.rm_file, inner), path)


def remove_empty(folder: str) -> None:
    with suppress(OSError):
        # Listed first: a few storages would remove the files in it, too.
        if scheme_of(folder) not in OBJECT_STORES and not list_dir(folder):
            fs, inner = filesystem_of(folder)
            fs.rmdir(inner)


def _remove_exactly(fs: Any, entry: dict[str, Any], *, is_store: bool) -> None:
    """Remove a file or folder whose name fsspec would take for a pattern, with all that matches."""
    if entry["type"] == "file":
        fs.rm_file(entry["name"])
        return
    for inner in _entries(fs, entry["name"]):
        _remove_exactly(fs, inner, is_store=is_store)
    if not is_store:
        fs.rmdir(entry["name"])


def is_file(path: str) -> bool:
    look_up = _object if scheme_of(path) in _GCS else _details
    with suppress(FileNotFoundError):
        return bool(retried(partial(look_up, path, ANY_REQUEST), path)["type"] == "file")
    return False


def list_files(pattern: str) -> list[str]:
    with suppress(FileNotFoundError):
        if retried(partial(_details, pattern), pattern)["type"] == "file":
            return [pattern]
    fs, inner = filesystem_of(pattern)
    magic = _MAGIC.search(inner)
    if magic is None:
        return []
    plain = inner[: magic.start()]
    root = plain.rpartition("/")[0]
    below = inner[len(root) :].lstrip("/")
    depth = None if "**" in below else below.count("/") + 1
    matches = re.compile(glob_translate(inner)).match
    # The library's own URLs would lack Azure's account, the archive that holds a file, and gcs://.
    own, mark, archive = pattern.partition("::") if is_chained(pattern) else (pattern, "", "")
    start = own[: own.rindex(inner[magic.start() :])]
    found = filter(matches, _files_below(fs, root, depth))
    return sorted(f"{start}{name.removeprefix(plain)}{mark}{archive}" for name in found)


def _files_below(fs: Any, folder: str, depth: int | None) -> Iterator[str]:
    """Yield the files below a folder; fsspec's own walk skips folders that it fails to list."""
    for entry in _entries(fs, folder):
        if entry["type"] == "file":
            yield entry["name"]
        elif depth is None or depth > 1:
            yield from _files_below(fs, entry["name"], depth and depth - 1)


def _entries(fs: Any, folder: str) -> list[dict[str, Any]]:
    """Return the entries of a folder; empty if it does not exist."""
    fs.invalidate_cache(folder)
    try:
        found = retried(partial(fs.ls, folder, detail=True), fs.unstrip_protocol(folder))
    except FileNotFoundError:
        return []
    return [entry for entry in found if entry["name"].strip("/") != folder.strip("/")]


def list_dir(folder: str) -> list[tuple[str, bool]]:
    fs, inner = filesystem_of(folder)
    return sorted(
        (posixpath.basename(entry["name"].rstrip("/")), entry["type"] == "directory")
        for entry in _entries(fs, inner)
    )


def _call(fs: Any, method: str, context: RequestContext, *args: Any, **more: Any) -> Any:
    """Call a method of a file system, with the deadline of the context."""
    if isinstance(fs, AsyncFileSystem):  # fsspec documents these names of its coroutines
        return run_until(context.deadline, partial(getattr(fs, f"_{method}"), *args, **more))
    return getattr(fs, method)(*args, **more)


def _file_details(path: str, context: RequestContext) -> dict[str, Any]:
    """Return fsspec's details of a file, or else of a folder."""
    if scheme_of(path) in _GCS:
        with suppress(FileNotFoundError):
            return _object(path, context)
    return _details(path, context)


def _object(path: str, context: RequestContext) -> dict[str, Any]:
    """Return the details of Google's object; gcsfs's info() also lists a folder of this name."""
    fs, inner = filesystem_of(path)
    bucket, name, generation = fs.split_path(inner)
    place = ("GET", "b/{}/o/{}", bucket, name)
    found = _call(fs, "call", context, *place, json_out=True, generation=generation)
    return {**found, "type": "file"}


def _details(path: str, context: RequestContext = ANY_REQUEST) -> dict[str, Any]:
    fs, inner = filesystem_of(path)
    return _call(fs, "info", context, inner)


# One response: the details of objects by name, and the token of the next page.
_Page = tuple[dict[str, dict[str, Any]], str | None]

#: Most objects in one response.
PAGE_OBJECTS = 1000


def list_infos(
    folder: str, context: RequestContext, first: str, last: str | None
) -> Iterator[dict[str, FileInfo]]:
    """Yield the infos of objects in a folder, page by page; see :func:`storage.list_infos`."""
    token: str | None = "" if scheme_of(folder) in _LIST_PAGE else None
    while token is not None:
        try:
            found, token = retried(partial(_list_page, folder, first, token), folder, context)
        except (FileNotFoundError, PermissionError):  # reading may be allowed where listing is not
            return
        infos = {f"{folder}/{name}": to_info(details) for name, details in found.items()}
        # As a URL, such a name would mean a version of another object.
        yield {path: info for path, info in infos.items() if not names_version(path)}
        if last is not None and max(found, default="") >= last:
            return


def _list_page(folder: str, first: str, token: str) -> _Page:
    fs, inner = filesystem_of(f"{folder}/_")  # the libraries would drop a trailing slash
    return _LIST_PAGE[scheme_of(folder)](fs, inner, first, token)


def _gcs_list(fs: Any, inner: str, first: str, token: str) -> _Page:
    bucket, prefix = _split(fs, inner)
    answer = fs.call(
        "GET",
        "b/{}/o",
        bucket,
        prefix=prefix,
        delimiter="/",
        startOffset=prefix + first,
        maxResults=PAGE_OBJECTS,
        pageToken=token or None,
        fields="nextPageToken,items(name,size,generation)",
        json_out=True,
    )
    found = {item["name"][len(prefix) :]: item for item in answer.get("items", ())}
    return found, answer.get("nextPageToken")


def _s3_list(fs: Any, inner: str, first: str, token: str) -> _Page:
    bucket, prefix = _split(fs, inner)
    # StartAfter excludes its key, so pass one just before the first. S3's directory buckets have no
    # order and refuse it.
    start = {} if bucket.endswith("--x-s3") else {"StartAfter": (prefix + first)[:-1]}
    answer = fs.call_s3(
        "list_objects_v2",
        Bucket=bucket,
        Prefix=prefix,
        Delimiter="/",
        MaxKeys=PAGE_OBJECTS,
        **({"ContinuationToken": token} if token else start),
        **fs.req_kw,
    )
    found = {
        item["Key"][len(prefix) :]: {"size": item["Size"], "ETag": item["ETag"]}
        for item in answer.get("Contents", ())
    }
    return found, answer.get("NextContinuationToken")


def _split(fs: Any, inner: str) -> tuple[str, str]:
    """Return the bucket, and the prefix of the names of the objects in the folder."""
    bucket, name, _ = fs.split_path(inner)
    return bucket, name[:-1]


_LIST_PAGE = {**dict.fromkeys(_GCS, _gcs_list), **dict.fromkeys(_S3, _s3_list)}
