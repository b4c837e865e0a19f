"""Where a path or URL leads: the names along it, whichever way it is written."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from recordgen.storage.paths import folder_of, is_http, is_local, local_path, scheme_of

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
