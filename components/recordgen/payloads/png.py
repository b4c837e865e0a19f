"""Read the chunks of a PNG, and find faults that Pillow accepts but TensorFlow's libpng does not.

Portable Network Graphics Specification (third edition), sections 10 and 11.2.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from recordgen.errors import PayloadError
from recordgen.payloads.header import UPRIGHT, FileHeader, corrupt, exif_orientation, truncated
from recordgen.rejects import RejectCode

# Most chunks of a PNG: 1,000 and one more for each kilobyte. Encoders write 8 kB or more in each
# chunk, and Pillow is slow for every chunk.
_MAX_CHUNKS, _CHUNK_BYTES = 1000, 1000

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"

_MOST_FRAMES = (1 << 31) - 1  # numbers have 31 bits (section 7.1)

#: Places of the bit depth and the colour type in a file.
PNG_DEPTH, PNG_COLOUR = 24, 25

_SIGNATURE_BYTES = 8
_SIZE = struct.Struct(">II")
_NAME = re.compile(rb"[A-Za-z]{4}")
_IHDR = struct.Struct(">IIBBBBB")
_COLOUR, _ALPHA = 9, 4  # place of the colour type, and its bit of an alpha channel

# Most bytes of tRNS (section 11.3.1.1). libpng ignores longer ones, all but the first, and those
# behind the pixels.
_TRANSPARENCY_BYTES = 256

# colour type: samples per pixel, allowed bit depths
_COLOUR_TYPES = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}

# Adam7: first column and row, column and row step of each pass
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
_PASSES = (((0, 0, 1, 1),), (*_ADAM7, (0, 1, 1, 2)))

_INFLATE_BYTES = 1 << 20

# Window sizes of zlib (RFC 1950, 2.2)
_SMALL_WINDOW, _LARGEST_WINDOW = 1 << 8, 1 << 15
_SMALL_READ_BYTES = 1 << 12


def png_header(data: bytes) -> FileHeader:
    """Read the header of a PNG; of ancillary chunks keep transparency only.

    Pillow inflates each profile and text, and refuses those above 1 MiB; none changes its pixels.

    Raises: PayloadError: it has too many chunks, or does not start with its header.
    """
    end = kept_from = _SIGNATURE_BYTES
    if data[end + 4 : end + 8] != b"IHDR" or len(data) < end + 8 + _IHDR.size:
        raise corrupt("the PNG does not start with its header")
    width, height = _SIZE.unpack_from(data, end + 8)
    kept, most = [data[:end]], _MAX_CHUNKS + len(data) // _CHUNK_BYTES
    orientation: int | None = None
    frames: int | None = None
    has_pixels = has_transparency = False
    for number, (kind, at, size) in enumerate(chunk_places(data)):
        if number >= most:
            raise PayloadError(
                RejectCode.TOO_MANY_PARTS,
                f"a PNG of {len(data):,} bytes may have at most {most:,} chunks, this one has "
                f"more; save it again with larger ones",
            )
        start, end = at - 8, at + size + 4
        has_pixels = has_pixels or kind == b"IDAT"
        if kind == b"eXIf" and orientation is None:
            orientation = exif_orientation(data[at : end - 4])
        if kind == b"acTL" and size == 8 and not has_pixels and frames is None:
            frames = int.from_bytes(data[at : at + 4], "big")
        is_kept = kind == b"tRNS" and size <= _TRANSPARENCY_BYTES
        is_kept = is_kept and not (has_pixels or has_transparency)
        has_transparency = has_transparency or is_kept
        if kind[:1].islower() and not is_kept:
            kept.append(data[kept_from:start])
            kept_from = end
    # A file that is not changed is not copied.
    found = data if len(kept) == 1 else b"".join([*kept, data[kept_from:end]])
    return FileHeader(
        "PNG",
        width,
        height,
        found,
        UPRIGHT if orientation is None else orientation,
        frames=frames if frames and frames <= _MOST_FRAMES else 1,
        bits=data[PNG_DEPTH],
        has_transparency=has_transparency or data[PNG_COLOUR] & _ALPHA != 0,
    )


def check_png(data: bytes) -> None:
    """Check all checksums, the header and the order of chunks, and that pixel data are complete.

    Raises: PayloadError: a check fails.
    """
    parts = list(chunks(data))
    if not parts or parts[0][0] != b"IHDR" or len(parts[0][1]) != _IHDR.size:
        raise corrupt("the PNG does not start with its header")
    colour, sizes = parts[0][1][_COLOUR], row_sizes(parts[0][1])
    _check_order([kind for kind, _ in parts])
    palettes = [len(body) for kind, body in parts if kind == b"PLTE"]
    wrong = [size for size in palettes if size % 3 or not 0 < size <= 768]
    if wrong or len(palettes) > 1 or (colour == 3 and not palettes):
        raise corrupt(f"the PNG palette is invalid ({palettes} bytes)")
    _check_pixel_data(
        [body for kind, body in parts if kind == b"IDAT"],
        expected=sum(rows * size for rows, size in sizes),
        row_bytes=min(size for _, size in sizes),
    )


def row_sizes(header: bytes) -> list[tuple[int, int]]:
    """Return for each pass its rows and their size in bytes, with the filter in front.

    Args:
        header: the body of IHDR.

    Raises: PayloadError: the header is invalid.
    """
    width, height, depth, colour, compression, filtering, interlace = _IHDR.unpack(header)
    samples, depths = _COLOUR_TYPES.get(colour, (0, ()))
    if depth not in depths or compression or filtering or interlace > 1:
        raise corrupt(
            f"the PNG header is invalid (colour type {colour}, bit depth {depth}, compression "
            f"{compression}, filter {filtering}, interlace {interlace})"
        )
    return [
        (rows, 1 + -(-columns * samples * depth // 8))
        for x, y, dx, dy in _PASSES[interlace]
        if (columns := -((x - width) // dx)) > 0 and (rows := -((y - height) // dy)) > 0
    ]


def _check_order(kinds: Sequence[bytes]) -> None:
    """Check the critical chunks: their names, and their order (section 5.6)."""
    known = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
    for kind in set(kinds) - known:
        # An upper case letter at the start means that a decoder must know the chunk.
        if not _NAME.fullmatch(kind) or kind[:1].isupper():
            raise corrupt(f"the PNG has a chunk that decoders must not skip ({kind!r})")
    if kinds.count(b"IHDR") > 1:
        raise corrupt("the PNG has a second header")
    if b"IDAT" not in kinds:
        return
    first = kinds.index(b"IDAT")
    if b"PLTE" in kinds[first:]:
        raise corrupt("the PNG has a palette behind its pixel data")
    if any(kind != b"IDAT" for kind in kinds[first : first + kinds.count(b"IDAT")]):
        raise corrupt("other chunks interrupt the PNG's pixel data")


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield each chunk's kind and body, up to the end chunk. Raises: PayloadError."""
    kind = b""
    for kind, at, size in chunk_places(data):
        body, end = data[at : at + size], at + size
        if end + 4 > len(data):
            raise truncated(f"the PNG is truncated in its {kind!r} chunk")
        if zlib.crc32(body, zlib.crc32(kind)).to_bytes(4, "big") != data[end : end + 4]:
            raise corrupt(f"the PNG's {kind!r} chunk has a wrong checksum")
        yield kind, body
    if kind != b"IEND":
        raise truncated("the PNG is truncated: it has no end chunk")


def _check_pixel_data(bodies: Sequence[bytes], *, expected: int, row_bytes: int) -> None:
    """Check that compressed pixel data have all rows, an end and a correct checksum.

    Args:
        bodies: parts of a zlib stream.
        expected: size of all rows in bytes.
        row_bytes: size of the shortest row.
    """
    read_bytes, step = _read_bytes(bodies, expected, row_bytes)
    most = expected + _INFLATE_BYTES  # some encoders write a row too many
    stream = zlib.decompressobj(wbits=0)  # with the window that the stream announces
    found = 0
    try:
        for body in bodies:
            for start in range(0, len(body), read_bytes):
                waiting = body[start : start + read_bytes]
                while waiting and not stream.eof and found <= most:
                    found += len(stream.decompress(waiting, step))
                    waiting = stream.unconsumed_tail
        if not stream.eof and found <= most:
            found += len(stream.flush())
    except zlib.error as exc:
        raise corrupt(f"the PNG does not inflate: {exc}") from exc
    if found < expected:
        raise truncated(f"the PNG has {found} of {expected} bytes of pixel data")
    if found > most:
        raise corrupt(f"the PNG has more pixel data than its rows ({expected} bytes)")
    if not stream.eof:
        raise truncated("the PNG's pixel data end without a checksum")


def _read_bytes(bodies: Sequence[bytes], expected: int, row_bytes: int) -> tuple[int, int]:
    """Return the number of bytes to inflate at a time, and to how many at most.

    zlib finds a reference beyond the announced window only if the bytes there were returned by an
    earlier call. libpng inflates row by row, so a file with such references may fail there.
    """
    first = next((body[0] for body in bodies if body), 0)
    window = _SMALL_WINDOW << (first >> 4)
    if window >= min(expected, _LARGEST_WINDOW):
        return _INFLATE_BYTES, _INFLATE_BYTES
    return _SMALL_READ_BYTES, min(_SMALL_WINDOW, row_bytes)


def chunk_places(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, offset and size of the body of each chunk up to the end, checksums unread."""
    at, kind = _SIGNATURE_BYTES, b""
    while at + 12 <= len(data) and kind != b"IEND":
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        yield kind, at + 8, size
        at += 12 + size


# --- colours --------------------------------------------------------------------------------------

# What viewers apply to an image's colours and TensorFlow ignores: profiles, also of other formats,
# and gamma. Pixels are stored as they are: converting them would change the bytes of many photos,
# and a model sees later images through TensorFlow, too. Sources: ICC.1:2022, sections 7 to 10; PNG
# (third edition), section 11.3.2.

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
