"""Paths and URLs as text: what they name, without asking any storage."""

from __future__ import annotations

import os
import posixpath
import re

#: Schemes of object stores that fsspec knows: buckets with objects, behind the user's credentials.
OBJECT_STORES = ("gs", "gcs", "s3", "s3a", "az", "abfs", "abfss", "adl", "oci", "oss", "tos")

_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*(?=://)")


def normal(path: str) -> str:
    """Return a path with its scheme in lower case, as all else here expects it: ``GS://B/A``."""
    return _SCHEME.sub(lambda found: found[0].lower(), path, count=1) if "://" in path else path


def is_local(path: str) -> bool:
    """Say whether ``path`` lies on this machine's file system."""
    return "://" not in path or path.startswith("file://")


def local_path(path: str) -> str:
    """Return the plain path of a local one: ``file:///a/b`` → ``/a/b``."""
    return path.removeprefix("file://")


def scheme_of(path: str) -> str:
    """Return a URL's scheme, ``file`` for a local path: ``gs://bucket/1.jpg`` → ``gs``."""
    return "file" if is_local(path) else path.split("://", 1)[0]


def is_http(path: str) -> bool:
    """Say whether ``path`` is an ``http://`` or ``https://`` URL."""
    return path.startswith(("http://", "https://"))


def is_chained(path: str) -> bool:
    """Say whether fsspec would take a URL for several: ``simplecache::gs://b/a``, ``zip://a::b``.

    In the URLs of object stores and web servers ``::`` is part of a name.
    """
    scheme = scheme_of(path)
    return "::" in path and scheme not in ("file", *OBJECT_STORES, "http", "https")


def join(root: str, *parts: str) -> str:
    """Join path parts with ``/``, for local paths and URLs alike."""
    return posixpath.join(root, *parts)


def is_relative(uri: str) -> bool:
    """Say whether a payload's address starts at its import file's folder."""
    return "://" not in uri and not uri.startswith("/")


def backslash_hint(path: str) -> str:
    r"""Return a hint for a Windows path such as ``images\a.jpg``; empty for other paths.

    A file of another system may have a backslash in its name, so none is replaced.
    """
    if "\\" not in path:
        return ""
    return "; a backslash separates folders on Windows alone: write / in its place"


def folder_of(source: str) -> str:
    """Return the folder in which an import file lies, as one text for each folder."""
    if is_local(source):
        return os.path.abspath(posixpath.dirname(local_path(source)))
    return posixpath.dirname(source)


def parents(folder: str) -> list[str]:
    """Return the folders in which a folder lies, the innermost first: ``/a/b`` → ``/a``, ``/``."""
    place, names = _tree(folder)
    root = f"{place}/"
    return [root + "/".join(names[:end]) for end in reversed(range(len(names)))]


def resolve(uri: str, source: str) -> str:
    """Return where the payload ``uri`` lies that a line of the import file ``source`` names.

    URLs and absolute paths are taken as they are (but ``GS://`` is ``gs://``), relative paths from
    the import file's folder: ``../images/1.jpg`` in ``gs://bucket/labels/a.csv`` → ``gs://bucket/images/1.jpg``.
    """
    if "://" in uri:
        return normal(uri)
    if uri.startswith("/"):
        return uri
    if is_local(source):
        return posixpath.join(posixpath.dirname(source), uri)
    # An object store takes ".." for a name; and nothing relative leaves the bucket or host.
    scheme, rest = source.split("://", 1)
    if is_http(source):  # "?" and "#" are parts of an object's name, but end a web server's path
        rest = re.split("[?#]", rest, maxsplit=1)[0]
    bucket, _, name = rest.partition("/")
    name = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), uri))
    return f"{scheme}://{bucket}/{name.lstrip('/')}"


def address(uri: str, source: str) -> str:
    """Return where a payload lies that a line of the import file ``source`` names, from anywhere.

    All spellings of one local path give one address, and so do relative paths in several folders:
    ``./1.mp4`` and ``../lists/1.mp4`` in ``/data/lists/train.csv`` → ``/data/lists/1.mp4``
    """
    path = resolve(uri, source)
    return os.path.abspath(local_path(path)) if is_local(path) else path


def from_folder(path: str, folder: str, *, outside: bool) -> str:
    """Return the relative path that leads from a folder to an address, or else the address.

    ``/data/v/1.mp4``, ``/data`` → ``v/1.mp4``; with ``outside``, ``/data/v/1.mp4``, ``/data/lists``
    → ``../v/1.mp4``

    Args:
        path: as :func:`address` returns it.
        folder: as :func:`folder_of` returns it.
        outside: also of an address that lies outside of the folder, on the same storage.
    """
    place, names = _tree(path)
    other, inside = _tree(folder)
    if place != other:
        return path
    found = posixpath.relpath("/" + "/".join(names), "/" + "/".join(inside))
    if found.startswith("../") and not outside:
        return path
    # The name of an object may hold what a path may not, such as "//".
    return found if address(found, join(folder, "")) == path else path


def below_shared(address: str, folder: str) -> str:
    """Return the path of an address from the last folder on that it shares with ``folder``.

    Copies of a tree of folders give the same paths, wherever they lie; equal addresses always do:
    ``/data/v/1.mp4``, ``/data/lists`` → ``v/1.mp4``; of another storage or bucket the path there:
    ``gs://bucket/v/1.mp4``, ``/data/lists`` → ``v/1.mp4``
    """
    place, names = _tree(address)
    other, inside = _tree(folder)
    shared = 0
    if place == other:
        for name, same in zip(names[:-1], inside, strict=False):
            if name != same:
                break
            shared += 1
    return "/".join(names[shared:])


def _tree(path: str) -> tuple[str, list[str]]:
    """Return the storage of a path (scheme and bucket, or host), and the names in it."""
    place, rest = "", path
    if not is_local(path):
        scheme, rest = path.split("://", 1)
        bucket, _, rest = rest.partition("/")
        place = f"{scheme}://{bucket}"
    return place, posixpath.normpath(f"/{rest}").strip("/").split("/")
