"""List sizes and versions of the objects in a folder, up to a thousand with each request."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from functools import partial
from typing import Any

from recordgen.storage.filesystems import filesystem_of, names_version
from recordgen.storage.paths import scheme_of
from recordgen.storage.remote import to_info
from recordgen.storage.retries import retried
from recordgen.storage.terms import FileInfo, RequestContext

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


def _gcs(fs: Any, inner: str, first: str, token: str) -> _Page:
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


def _s3(fs: Any, inner: str, first: str, token: str) -> _Page:
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


def _memory(fs: Any, inner: str, first: str, token: str) -> _Page:
    # Look up each file: listings format a file's age differently than info() does.
    found = map(fs.info, fs.ls(posixpath.dirname(inner), detail=False))
    return {
        posixpath.basename(item["name"]): item for item in found if item["type"] == "file"
    }, None


def _split(fs: Any, inner: str) -> tuple[str, str]:
    """Return the bucket, and the prefix of the names of the objects in the folder."""
    bucket, name, _ = fs.split_path(inner)
    return bucket, name[:-1]


_LIST_PAGE = {"gs": _gcs, "gcs": _gcs, "s3": _s3, "s3a": _s3, "memory": _memory}
