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

# Names by the colour space of a profile; gray levels are hardly converted.
_OTHER_MODELS = {b"GRAY": None, b"CMYK": "CMYK profile"}

# PNG: sRGB's gamma times 100,000, and the relative difference that libpng ignores; sRGB among the
# code points of ITU-T H.273.
_GAMMA, _SAME_GAMMA = 45_455, 0.05
_SRGB_POINTS = b"\x01\x0d\0\1"


def png_colours(data: bytes) -> str | None:
    """Name the colours of a PNG if viewers convert them.

    The first of cICP, iCCP, sRGB and gAMA that is there counts.
    """
    found: dict[bytes, bytes] = {}
    for kind, at, size in chunk_places(data):
        if kind == b"IDAT":
            break
        if kind in (b"cICP", b"iCCP", b"sRGB", b"gAMA"):
            found.setdefault(kind, data[at : at + size])
    if b"cICP" in found:
        return None if found[b"cICP"] == _SRGB_POINTS else "cICP"
    if b"iCCP" in found:
        return profile_colours(_inflated(found[b"iCCP"]))
    if b"sRGB" in found:
        return None
    gamma = int.from_bytes(found.get(b"gAMA", b""), "big")
    is_srgb = not 0 < gamma < 1 << 31 or abs(gamma / _GAMMA - 1) <= _SAME_GAMMA
    return None if is_srgb else "gamma other than 2.2"


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
        space = profile[16:20].strip()
        if space != b"RGB":
            return _OTHER_MODELS.get(space, "profile of another colour model")
        if b"rXYZ" not in tags:
            return None if b"sRGB" in tags.get(b"desc", b"").replace(b"\0", b"") else "RGB profile"
        primaries = (*_xyz(tags[b"rXYZ"]), *_xyz(tags[b"gXYZ"]))
        names = (name for name, known in _SPACES.items() if _is_near(primaries, sum(known, ())))
        name = next(names, "RGB profile")
        return None if name == "sRGB" else name
    except (KeyError, struct.error, ValueError):
        return None  # viewers ignore it, too


def _is_near(values: tuple[float, ...], known: tuple[float, ...]) -> bool:
    return all(abs(a - b) < _SAME_XYZ for a, b in zip(values, known, strict=True))


def _xyz(tag: bytes) -> _Colour:
    x, y, z = (value / 65536 for value in struct.unpack_from(">3i", tag, 8))
    return x, y, z


def _inflated(body: bytes) -> bytes:
    """Inflate the profile of an iCCP chunk; empty if it is damaged or huge."""
    stream = zlib.decompressobj()
    try:
        profile = stream.decompress(body.partition(b"\0")[2][1:], _MAX_BYTES)
    except zlib.error:
        return b""
    return profile if stream.eof else b""
