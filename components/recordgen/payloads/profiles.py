"""Name what viewers apply to an image's colours and TensorFlow ignores: profiles and gamma.

Pixels are stored as they are: converting them would change the bytes of many photos, and a model
sees later images through TensorFlow, too. Sources: ICC.1:2022, sections 7 to 10; PNG (third
edition), section 11.3.2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from functools import lru_cache

from recordgen.payloads.png import chunk_places

# Profiles of printers take up to a few megabytes.
_MAX_BYTES = 16_000_000

# Profiles up to this size are parsed once: photos of one camera share theirs.
_CACHED_BYTES = 20_000

_Colour = tuple[float, float, float]

# Red and green of colour spaces as XYZ of their profiles, relative to D50.
_SPACES: Mapping[str, tuple[_Colour, _Colour]] = {
    "sRGB": ((0.436, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971)),
    "Adobe RGB": ((0.6097, 0.3111, 0.0195), (0.2053, 0.6257, 0.0609)),
    "Display P3": ((0.5151, 0.2412, -0.001), (0.292, 0.6922, 0.0419)),
    "ProPhoto RGB": ((0.7977, 0.288, 0.0), (0.1352, 0.7119, 0.0)),
    "Rec. 2020": ((0.6735, 0.279, -0.0019), (0.1657, 0.6754, 0.03)),
}
_SAME_XYZ = 0.015

# The light of level 0.5 in sRGB, and how much another curve may differ: gamma 2.2 gives 0.218 and
# gamma 1.8 gives 0.287.
_HALF_LIGHT, _SAME_LIGHT = 0.214, 0.025

# PNG: sRGB's gamma times 100,000, and the relative difference that libpng ignores; white, red,
# green and blue of sRGB times 100,000; sRGB among the code points of ITU-T H.273.
_GAMMA, _SAME_GAMMA = 45_455, 0.05
_CHROMATICITIES, _SAME_CHROMATICITY = (31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000), 1000
_SRGB_POINTS = b"\x01\x0d\0\1"


def png_colours(data: bytes) -> str | None:
    """Name the colours of a PNG if viewers convert them.

    The first of cICP, iCCP, sRGB, gAMA and cHRM that is there counts.
    """
    found: dict[bytes, bytes] = {}
    for kind, at, size in chunk_places(data):
        if kind == b"IDAT":
            break
        if kind in (b"cICP", b"iCCP", b"sRGB", b"gAMA", b"cHRM"):
            found.setdefault(kind, data[at : at + size])
    if b"cICP" in found:
        return None if found[b"cICP"] == _SRGB_POINTS else "cICP"
    if b"iCCP" in found:
        return profile_colours(_inflated(found[b"iCCP"]))
    if b"sRGB" in found:
        return None
    gamma = int.from_bytes(found.get(b"gAMA", b""), "big")
    if not 0 < gamma < 1 << 31:  # without it, browsers ignore the primaries, too
        return None
    if abs(gamma / _GAMMA - 1) > _SAME_GAMMA:
        return "gamma other than 2.2"
    primaries = found.get(b"cHRM", b"")
    if len(primaries) != 8 * 4:
        return None
    pairs = zip(struct.unpack(">8I", primaries), _CHROMATICITIES, strict=True)
    is_srgb = all(abs(value - expected) <= _SAME_CHROMATICITY for value, expected in pairs)
    return None if is_srgb else "other primaries"


def profile_colours(profile: bytes) -> str | None:
    """Name the colours of an ICC profile; None if they are sRGB's, or the profile is damaged.

    The name never quotes the file, which may be one that only the run may read.
    """
    if len(profile) > _CACHED_BYTES:
        return _named(profile)
    return _named_once(profile)


@lru_cache(maxsize=64)
def _named_once(profile: bytes) -> str | None:
    return _named(profile)


def _named(profile: bytes) -> str | None:
    try:
        [size] = struct.unpack_from(">I", profile)
        if profile[36:40] != b"acsp" or size > len(profile):
            return None
        [count] = struct.unpack_from(">I", profile, 128)
        entries = struct.iter_unpack(">4sII", profile[132 : 132 + 12 * min(count, 1000)])
        tags = {kind: profile[at : at + size] for kind, at, size in entries}
        space = profile[16:20]
        if space == b"GRAY":
            return None if _is_srgb_curve(tags[b"kTRC"]) else "gray profile"
        if space != b"RGB ":
            return "CMYK profile" if space == b"CMYK" else "profile of another colour model"
        if b"rXYZ" not in tags or b"rTRC" not in tags:
            return None if b"sRGB" in tags.get(b"desc", b"").replace(b"\0", b"") else "RGB profile"
        red, green = _xyz(tags[b"rXYZ"]), _xyz(tags[b"gXYZ"])
        name = next(
            (name for name, known in _SPACES.items() if _is_near((*red, *green), sum(known, ()))),
            "RGB profile",
        )
        if name != "sRGB":
            return name
        return None if _is_srgb_curve(tags[b"rTRC"]) else "RGB profile"
    except (KeyError, struct.error, ValueError):
        return None  # viewers ignore it, too


def _is_near(values: tuple[float, ...], known: tuple[float, ...]) -> bool:
    return all(abs(a - b) < _SAME_XYZ for a, b in zip(values, known, strict=True))


def _xyz(tag: bytes) -> _Colour:
    x, y, z = (value / 65536 for value in struct.unpack_from(">3i", tag, 8))
    return x, y, z


def _is_srgb_curve(tag: bytes) -> bool:
    return abs(_light_of_half(tag) - _HALF_LIGHT) < _SAME_LIGHT


def _light_of_half(tag: bytes) -> float:
    """Return the light of level 0.5 by a tone curve (10.6 and 10.18)."""
    if tag.startswith(b"para"):
        [kind] = struct.unpack_from(">H", tag, 8)
        counts = (1, 3, 4, 5, 7)
        values = struct.unpack_from(f">{counts[kind]}i", tag, 12) if kind < len(counts) else ()
        gamma, *rest = (value / 65536 for value in values)
        a, b, *_ = (*rest, 1.0, 0.0) if len(rest) < 2 else rest
        offset = rest[2] if kind == 2 else rest[4] if kind == 4 else 0.0
        return float(max(0.0, a / 2 + b) ** gamma + offset)
    [count] = struct.unpack_from(">I", tag, 8)
    if count == 0:
        return 0.5
    if count == 1:
        return float(0.5 ** (struct.unpack_from(">H", tag, 12)[0] / 256))
    [middle] = struct.unpack_from(">H", tag, 12 + count // 2 * 2)
    return float(middle / 65535)


def _inflated(body: bytes) -> bytes:
    """Inflate the profile of an iCCP chunk; empty if it is damaged or huge."""
    stream = zlib.decompressobj()
    try:
        profile = stream.decompress(body.partition(b"\0")[2][1:], _MAX_BYTES)
    except zlib.error:
        return b""
    return profile if stream.eof else b""
