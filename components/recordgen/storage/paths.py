"""Paths and URLs as text, and where they lead; the gate for names from a record, a label or a uri.

    inside("to", "train/cat/rex.jpg")  ─▶  to/train/cat/rex.jpg
    inside("to", "../../x")            ─▶  RecordError

A name is accepted if it names a file below the folder on every system, so that a copy of a dataset
may be moved to another one. Exports write only to paths of :func:`inside`; a test reads their code.
"""

from __future__ import annotations

import os
import posixpath
import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from recordgen.errors import RecordError, UsageError

#: Schemes of fsspec's object stores: buckets with objects, accessed with the user's credentials.
OBJECT_STORES = ("gs", "gcs", "s3", "s3a", "az", "abfs", "abfss", "adl", "oci", "oss", "tos")

# Below the 5 MB from which gcsfs sends a file in parts.
_BYTES_AT_ONCE = 4 << 20

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


def real(path: str) -> str:
    """Return the one address of a local file, in a folder that is no link; a URL as it is."""
    if not is_local(path):
        return path
    folder, name = posixpath.split(local_path(path))
    return join(with_slashes(os.path.realpath(folder)), name)


def is_local(path: str) -> bool:
    """Return whether ``path`` is on this machine's file system."""
    return "://" not in path or path.startswith("file://") or not is_url(path)


def local_path(path: str) -> str:
    """Return a local path without its scheme: ``file:///a/b`` → ``/a/b``."""
    return path.removeprefix("file://")


def scheme_of(path: str) -> str:
    """Return a URL's scheme, ``file`` for a local path: ``gs://bucket/1.jpg`` → ``gs``."""
    return "file" if is_local(path) else path.split("://", 1)[0]


def bytes_at_once(path: str) -> int:
    """Return up to how many bytes a file is written by one request, or not at all; -1 for none.

    Storages other than object stores may keep a part of a file that cannot be written whole.
    """
    return _BYTES_AT_ONCE if scheme_of(path) in OBJECT_STORES else -1


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
    return path.startswith("/") or (os.sep != "/" and os.path.isabs(path))  # C:/ on Windows


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
        return source[: source.rfind("/") + 1] + uri
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


# Aliases of a scheme.
FAMILY = {"gcs": "gs", "s3a": "s3", "abfs": "az", "abfss": "az"}

# Folders under which Kubeflow's launcher and Vertex AI mount buckets.
_MOUNTED = {"gcs": "gs", "s3": "s3"}

# Servers and libraries interpret these characters differently.
_ODD = re.compile(r"[\\\x00-\x20\x7f]")
_ODD_PATH = re.compile(r"[\\\x00-\x1f\x7f]|%2f|%5c", re.IGNORECASE)

# Bytes that are no UTF-8, but that some servers read as "." or "/", and IIS's own notation.
_OVERLONG = re.compile(r"%c[01]|%e0%[89]|%f0%8|%u[0-9a-f]{4}", re.IGNORECASE)
_DECODINGS = 4  # a server behind a proxy may decode a path again


def place_of(path: str) -> tuple[str, ...] | None:
    """Return the names along a path, outermost first; None if the path is ambiguous.

    ``/a/../b/1.jpg`` → ``("file", "b", "1.jpg")``, with symlinks resolved;
    ``gcs://bucket/a/1.jpg`` → ``("gs", "bucket", "a", "1.jpg")``;
    ``https://Host/a%20b?c`` → ``("https", "host", "443", "a b")``.
    """
    if is_local(path):
        if "\0" in path:
            return None
        return ("file", *_names(os.path.realpath(local_path(path))))
    scheme, rest = path.split("://", 1)
    if is_http(path):
        _, host, port = origin_of(path)
        if not host or port is None:
            return None
        url = urlsplit(path)
        if _ODD.search(url.netloc) or _is_ambiguous(url.path):
            return None
        outside = [scheme, host, str(port)]
        names = _names(unquote(url.path))
    else:
        bucket, _, name = rest.partition("/")
        outside = [FAMILY.get(scheme, scheme), bucket]
        names = _names(f"/{name}")
    if not {".", ".."}.isdisjoint(names):
        return None
    return (*outside, *names)


def _is_ambiguous(path: str) -> bool:
    """Return whether servers may interpret the path of a URL in several ways.

    They may decode it again (``%252e``), remove what follows a ``;`` in a name or the blanks
    around it (``..;``, ``..%20``), or take other characters for dots and slashes.
    """
    if _OVERLONG.search(path):
        return True
    for _ in range(_DECODINGS):
        names = (name.partition(";")[0] for name in normalize("NFKC", path).split("/"))
        if _ODD_PATH.search(path) or any(name.strip(" ") in (".", "..") for name in names):
            return True
        decoded = unquote(path)
        if decoded == path:
            return False
        path = decoded
    return True  # encoded again and again


@lru_cache(64)
def own_places(source: str) -> tuple[tuple[str, ...], ...]:
    """Return the folder, bucket or server of an import file, which confined rows may reach.

    Pipelines also mount buckets as folders: ``/gcs/bucket/a.csv`` is ``gs://bucket/a.csv``.
    """
    place = place_of(folder_of(source) if is_local(source) else source) or (scheme_of(source),)
    if place[0] != "file":
        return (wider(place),)
    if len(place) > 2 and place[1] in _MOUNTED:
        return place, (_MOUNTED[place[1]], place[2])
    return (place,)


def wider(place: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folder, bucket or server that contains a place."""
    if place[0] == "file":
        return place[:-1]
    return place[: 3 if is_http(f"{place[0]}://") else 2]


def shown(place: tuple[str, ...]) -> str:
    """Format a place as a path or URL: ``("gs", "bucket")`` → ``gs://bucket``."""
    if place[0] == "file":
        return "/" + "/".join(place[1:])
    if is_http(f"{place[0]}://"):
        scheme, host, port, *names = place
        return "/".join((f"{scheme}://{host}:{port}", *names))
    return f"{place[0]}://{'/'.join(place[1:])}"


def _names(path: str) -> list[str]:
    """Return the names in an absolute path; a trailing slash adds none."""
    return path.rstrip("/").split("/")[1:]


#: Default ports of web servers, by scheme.
PORTS = {"http": 80, "https": 443}

# RFC 6052: the last 32 bits are an IPv4 address behind a translator.
_NAT64 = IPv6Network("64:ff9b::/96")

# Private networks that Python, at least in some versions, takes for public: deprecated
# IPv4-compatible addresses, site-local addresses, and a network's own NAT64.
_NOT_PUBLIC = tuple(map(IPv6Network, ("::/96", "fec0::/10", "64:ff9b:1::/48")))


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port: ``https://Host/a`` → ``("https", "host", 443)``.

    The port is None if ``url`` is not a valid URL or its scheme has no default port.
    """
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return url, "", None


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet.

    Loopback, private, link-local (169.254.169.254, where clouds serve credentials), shared,
    reserved and multicast addresses do not, nor do IPv6 addresses that embed one of them.
    """
    ip = ip_address(address.split("%", 1)[0])
    inner = _embedded(ip) if isinstance(ip, IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    if any(ip in network for network in _NOT_PUBLIC):
        return False
    return ip.is_global and not ip.is_multicast


def _embedded(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds, if any."""
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour
