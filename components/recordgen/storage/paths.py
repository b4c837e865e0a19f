"""Paths and URLs as text, without access to any storage."""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import unquote

#: Schemes of fsspec's object stores: buckets with objects, accessed with the user's credentials.
OBJECT_STORES = ("gs", "gcs", "s3", "s3a", "az", "abfs", "abfss", "adl", "oci", "oss", "tos")

_SCHEME_NAME = re.compile(r"[a-z][a-z0-9+.-]+")

# The schemes of most URLs, which are found sooner than any other.
_USUAL = ("gs://", "s3://", "https://", "http://", "file://")
# A scheme, perhaps behind those of fsspec's chains: simplecache::gs://
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*(?:::[A-Za-z][\w+.-]*)*(?=://)", re.ASCII)


def is_url(path: str) -> bool:
    """Return whether a text is a URL, which begins with a scheme; all other texts are paths.

    In a path, ``?``, ``#``, ``%`` and a later ``://`` are letters of a name.
    """
    return "://" in path and (path.startswith(_USUAL) or _SCHEME.match(path) is not None)


def normal(path: str) -> str:
    """Return a path as the other functions expect it: a scheme in lower case, ``~`` written out."""
    if "://" not in path or path.startswith(_USUAL) or not (scheme := _SCHEME.match(path)):
        return with_slashes(os.path.expanduser(path))
    return scheme[0].lower() + path[scheme.end() :]


def with_slashes(path: str) -> str:
    r"""Return a path with ``/`` between folders, which Windows takes, too: ``C:\a`` → ``C:/a``."""
    return path.replace(os.sep, "/") if os.sep != "/" else path


def absolute(path: str) -> str:
    """Return the absolute path of a local path; a URL as it is."""
    return with_slashes(os.path.abspath(local_path(path))) if is_local(path) else path


def is_local(path: str) -> bool:
    """Return whether ``path`` is on this machine's file system."""
    return "://" not in path or path.startswith("file://") or not is_url(path)


def local_path(path: str) -> str:
    """Return a local path without its scheme: ``file:///a/b`` → ``/a/b``."""
    return path.removeprefix("file://")


def scheme_of(path: str) -> str:
    """Return a URL's scheme, ``file`` for a local path: ``gs://bucket/1.jpg`` → ``gs``."""
    return "file" if is_local(path) else path.split("://", 1)[0]


def is_http(path: str) -> bool:
    """Return whether ``path`` is an ``http://`` or ``https://`` URL."""
    return path.startswith(("http://", "https://"))


def is_chained(path: str) -> bool:
    """Return whether fsspec would split a URL: ``simplecache::gs://b/a``, ``zip://a::b``.

    In URLs of object stores and web servers, ``::`` is part of a name.
    """
    scheme = scheme_of(path)
    return "::" in path and scheme not in ("file", *OBJECT_STORES, "http", "https")


def join(root: str, *parts: str) -> str:
    """Join path parts with ``/``, for local paths and URLs alike."""
    return posixpath.join(root, *parts)


def is_relative(uri: str) -> bool:
    """Return whether a payload's uri is relative to the folder of its import file."""
    return not _is_absolute(uri) and not is_url(uri)


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or os.path.isabs(path)  # C:/ on Windows


def slip_hint(path: str) -> str:
    r"""Return a hint for a path with a usual slip; empty for other paths.

    ``images\a.jpg`` of Windows, ``gs:/bucket/a.jpg`` with one slash, ``file:///my%20photo.jpg``
    with a code for a blank. Nothing is replaced: each may be the name of a file.
    """
    if "\\" in path:
        return "; only Windows separates folders with a backslash: write / instead"
    before, mark, after = path.partition(":/")
    scheme = before.rpartition("/")[2]
    if mark and not after.startswith("/") and _SCHEME_NAME.fullmatch(scheme):
        return f"; a URL begins with two slashes: {scheme}://"
    if path.startswith("file://") and (name := unquote(path)) != path:
        return f"; codes such as %20 are not decoded in file:// paths: write {local_path(name)}"
    return ""


def folder_of(source: str) -> str:
    """Return the folder of an import file, normalised."""
    if is_local(source):
        return absolute(posixpath.dirname(local_path(source)))
    return posixpath.dirname(source)


def parents(folder: str) -> list[str]:
    """Return the parent folders of a folder, the innermost first: ``/a/b`` → ``/a``, ``/``."""
    place, names = _tree(folder)
    root = f"{place}/"
    return [root + "/".join(names[:end]) for end in reversed(range(len(names)))]


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path or URL is a folder or below it; links of local paths are followed."""
    inner, outer = (
        (os.path.realpath(local_path(name)) if is_local(name) else name) for name in (path, folder)
    )
    return f"{normal(inner).rstrip('/')}/".startswith(f"{normal(outer).rstrip('/')}/")


def resolve(uri: str, source: str) -> str:
    """Return the path or URL of the payload ``uri`` in a row of the import file ``source``.

    URLs and absolute paths stay as they are (but ``GS://`` becomes ``gs://``); relative paths start
    at the import file's folder:
    ``../images/1.jpg`` in ``gs://bucket/labels/a.csv`` → ``gs://bucket/images/1.jpg``.
    """
    if is_url(uri):
        return normal(uri)
    if _is_absolute(uri):
        return uri
    if is_local(source):
        return posixpath.join(posixpath.dirname(source), uri)
    # Resolve "..": object stores take it for a name. No relative path leaves the bucket or host.
    scheme, rest = source.split("://", 1)
    if is_http(source):  # "?" and "#" end a URL's path, but are part of an object's name
        rest = re.split("[?#]", rest, maxsplit=1)[0]
    bucket, _, name = rest.partition("/")
    name = posixpath.normpath(posixpath.join("/", posixpath.dirname(name), uri))
    return f"{scheme}://{bucket}/{name.lstrip('/')}"


def address(uri: str, source: str) -> str:
    """Return the absolute path or URL of a payload in a row of the import file ``source``.

    All spellings of one local path give the same address:
    ``./1.mp4`` and ``../lists/1.mp4`` in ``/data/lists/train.csv`` → ``/data/lists/1.mp4``
    """
    return absolute(resolve(uri, source))


def from_folder(path: str, folder: str, *, outside: bool) -> str:
    """Return the relative path from a folder to an address if there is one, else the address.

    ``/data/v/1.mp4``, ``/data`` → ``v/1.mp4``; with ``outside``, ``/data/v/1.mp4``, ``/data/lists``
    → ``../v/1.mp4``: a relative path out of the folder, on the same storage.
    """
    place, names = _tree(path)
    other, inside = _tree(folder)
    if place != other:
        return path
    found = posixpath.relpath("/" + "/".join(names), "/" + "/".join(inside))
    if found.startswith("../") and not outside:
        return path
    # An object's name may contain text that a path normalises, such as "//".
    return found if address(found, join(folder, "")) == path else path


def below_shared(address: str, folder: str) -> str:
    """Return the path of an address below the last folder that it shares with ``folder``.

    So copies of a folder tree give the same paths:
    ``/data/v/1.mp4``, ``/data/lists`` → ``v/1.mp4``. For another storage or bucket, it is the path
    there: ``gs://bucket/v/1.mp4``, ``/data/lists`` → ``v/1.mp4``
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
    """Return the storage of a path (scheme and bucket or host), and the names of the path in it."""
    place, rest = os.path.splitdrive(path)  # C: of Windows
    if not is_local(path):
        scheme, rest = path.split("://", 1)
        bucket, _, rest = rest.partition("/")
        place = f"{scheme}://{bucket}"
    return place, posixpath.normpath(f"/{rest}").strip("/").split("/")
