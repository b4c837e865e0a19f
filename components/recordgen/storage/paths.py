"""Paths and URLs as text; and the gate for names that come from a record, a label or a uri.

    inside("to", "train/cat/rex.jpg")  ─▶  to/train/cat/rex.jpg
    inside("to", "../../x")            ─▶  RecordError

A name is accepted if it names a file below the folder on every system, so that a copy of a dataset
may be moved to another one. Exports write only to paths of :func:`inside`; a test reads their code.
"""

from __future__ import annotations

import os
import posixpath
import re
from urllib.parse import unquote

from recordgen.errors import RecordError, UsageError

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
        return os.path.expanduser(path)
    return scheme[0].lower() + path[scheme.end() :]


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
    return not uri.startswith("/") and not is_url(uri)


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
        return os.path.abspath(posixpath.dirname(local_path(source)))
    return posixpath.dirname(source)


def parents(folder: str) -> list[str]:
    """Return the parent folders of a folder, the innermost first: ``/a/b`` → ``/a``, ``/``."""
    place, names = _tree(folder)
    root = f"{place}/"
    return [root + "/".join(names[:end]) for end in reversed(range(len(names)))]


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path or URL is a folder or below it; links of local paths are followed."""
    if is_local(path) != is_local(folder):
        return False
    if is_local(path):
        inner, outer = (os.path.realpath(local_path(name)) for name in (path, folder))
        return os.path.commonpath([inner, outer]) == outer
    inner, outer = (normal(name).rstrip("/") for name in (path, folder))
    return f"{inner}/".startswith(f"{outer}/")


def resolve(uri: str, source: str) -> str:
    """Return the path or URL of the payload ``uri`` in a row of the import file ``source``.

    URLs and absolute paths stay as they are (but ``GS://`` becomes ``gs://``); relative paths start
    at the import file's folder:
    ``../images/1.jpg`` in ``gs://bucket/labels/a.csv`` → ``gs://bucket/images/1.jpg``.
    """
    if is_url(uri):
        return normal(uri)
    if uri.startswith("/"):
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
    path = resolve(uri, source)
    return os.path.abspath(local_path(path)) if is_local(path) else path


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
    place, rest = "", path
    if not is_local(path):
        scheme, rest = path.split("://", 1)
        bucket, _, rest = rest.partition("/")
        place = f"{scheme}://{bucket}"
    return place, posixpath.normpath(f"/{rest}").strip("/").split("/")


# Bytes in the name of a file or folder, and in a path: NAME_MAX and PATH_MAX of Linux.
_MAX_NAME, _MAX_PATH = 255, 4096

# Separators of folders, control characters, and halves of characters, which have no UTF-8.
_REFUSED = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
# "Naming Files, Paths, and Namespaces", Microsoft: devices, also with a suffix.
_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE | re.DOTALL
)


def name_fault(name: str) -> str:
    """Return why a text is no name of a file or folder on every system; empty if it is one.

    ``..`` → ``it ends with a dot or a blank``; ``rex.jpg`` → an empty text
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    if not 0 < size <= _MAX_NAME:
        return f"it has {size:,} bytes, and a name 1 to {_MAX_NAME}"
    if _REFUSED.search(name):
        return "it has a slash, a backslash or a control character"
    if name[-1] in ". ":
        return "it ends with a dot or a blank"
    if _DRIVE.match(name):
        return "it begins with a drive"
    return "Windows reserves it for a device" if is_reserved(name) else ""


def is_reserved(name: str) -> bool:
    """Return whether Windows takes a name for a device: ``con``, ``NUL.txt``."""
    return _RESERVED.fullmatch(name) is not None


def path_fault(path: str) -> str:
    """Return why a text is no path of a file below a folder; empty if it is one."""
    if len(path) > _MAX_PATH:
        return f"it has {len(path):,} characters, and a path at most {_MAX_PATH:,}"
    return next(filter(None, map(name_fault, path.split("/"))), "")


def inside(folder: str, name: str) -> str:
    """Return the path of a file that is written into a folder or below a URL.

    Raises:
        RecordError: the name would leave the folder, or is none on every system.
        UsageError: a link in the folder leads out of it.
    """
    if fault := path_fault(name):
        raise RecordError(f"{folder}: no file may be named {name!r:.300} there: {fault}")
    if is_local(folder):
        parent = local_path(folder)
        for each in name.split("/")[:-1]:
            parent = os.path.join(parent, each)
            if os.path.islink(parent) and not is_inside(parent, folder):
                raise UsageError(
                    f"{parent}: this link leads out of {folder}, and nothing is written there; "
                    f"remove it, or give another folder"
                )
    return join(folder, name)
