"""Network addresses: whether they are public, and the server of a URL."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

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
