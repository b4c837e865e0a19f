"""Small files that make decoders write beyond their buffers, or take memory or time without bound.

Each function takes the number of parts that a hostile file has many of.
"""

import struct
import zlib
from functools import partial

from benchmarks.bombs import png_chunk
from benchmarks.mutants import encoded, picture
from tests.payloads.refusals import by_name

SMALL = picture().resize((20, 12))
JPEG = encoded(SMALL, "JPEG")
PNG = encoded(SMALL, "PNG")
GIF = encoded(SMALL, "GIF")

LOSSLESS = 0xC3
ADOBE = b"Adobe\0\x64\0\0\0\0\0"


def segment(marker, body):
    """Return a segment of a JPEG."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def frame(marker, width, height, *, components=1, bits=8):
    """Return the frame header of a JPEG: T.81, B.2.2."""
    head = struct.pack(">BHHB", bits, height, width, components)
    return segment(marker, head + b"".join(bytes([1 + at, 0x11, 0]) for at in range(components)))


def jpeg_of(*frames, scan=b"\1\1\0\1\0\0", pixels=0):
    """Return a JPEG with these segments, and a scan of zeros with one bit for each pixel."""
    table = segment(0xC4, b"\0\1" + bytes(16))  # one code, of one bit: no difference
    body = bytes(-(-pixels // 8))
    return b"".join((b"\xff\xd8", *frames, table, segment(0xDA, scan), body, b"\xff\xd9"))


def lossless_jpeg(side, marker=LOSSLESS):
    """Return a gray lossless JPEG (T.81, H) whose differences are all zero."""
    return jpeg_of(frame(marker, side, side), pixels=side * side)


def tiff(tags, data):
    """Return a TIFF: its directory follows ``data``, which starts at byte 8."""
    at = 8 + len(data) + len(data) % 2
    entries = b"".join(struct.pack("<HHI", *tag[:3]) + tag[3].ljust(4, b"\0") for tag in tags)
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    return b"II*\0" + struct.pack("<I", at) + data + bytes(len(data) % 2) + directory


def number(value):
    return struct.pack("<I", value)


def gray_tags(side, compression, size):
    """Return the directory of a gray square in one strip, which starts at byte 8."""
    shorts = {258: 8, 259: compression, 262: 1}
    longs = {256: side, 257: side, 273: 8, 277: 1, 278: side, 279: size}
    found = [(tag, 3, 1, number(value)) for tag, value in shorts.items()]
    return sorted(found + [(tag, 4, 1, number(value)) for tag, value in longs.items()])


def tiff_of_jpeg(jpeg, side, compression=7):
    return tiff(gray_tags(side, compression, len(jpeg)), jpeg)


def tags_at_one_block(count, block_bytes):
    """Return private tags whose values are all the same bytes, from byte 8."""
    return [(0xC000 + at, 7, block_bytes, number(8)) for at in range(count)]


def exif_of_tags(count, block_bytes):
    return tiff(
        [(0x0112, 3, 1, number(6)), *tags_at_one_block(count, block_bytes)], bytes(block_bytes)
    )


def jpeg_of_exif(exif):
    """Return a JPEG whose Exif takes several segments."""
    parts = (exif[at : at + 65_000] for at in range(0, len(exif), 65_000))
    return JPEG[:2] + b"".join(segment(0xE1, b"Exif\0\0" + part) for part in parts) + JPEG[2:]


def jpeg_of_segments(count, marker, body):
    return JPEG[:2] + segment(marker, body) * count + JPEG[2:]


def jpeg_of_profiles(count):
    """Return a JPEG with the first of 255 parts of a profile, ``count`` times."""
    return jpeg_of_segments(count, 0xE2, b"ICC_PROFILE\0\1\xff" + bytes(200))


def png_of(chunks):
    return PNG[:33] + chunks + PNG[33:]


def png_of_exif(exif):
    return png_of(png_chunk(b"eXIf", exif))


def png_of_texts(kind, count, size=1_000_000):
    """Return a PNG with compressed texts or profiles that inflate to ``size`` bytes each."""
    packed = zlib.compress(bytes(size), 9)
    heads = {b"iCCP": b"a\0\0", b"zTXt": b"a\0\0", b"iTXt": b"a\0\1\0\0\0", b"tEXt": b"a\0"}
    return png_of(png_chunk(kind, heads[kind] + packed) * count)


def webp_of(chunks):
    """Return a WEBP with an extended header, its pixels, and these chunks."""
    still = encoded(SMALL, "WEBP")[12:]
    sides = struct.pack("<I", SMALL.width - 1)[:3] + struct.pack("<I", SMALL.height - 1)[:3]
    body = b"WEBP" + webp_chunk(b"VP8X", b"\x08\0\0\0" + sides) + still + chunks
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_chunk(kind, body):
    return kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


def webp_of_exif(exif):
    return webp_of(webp_chunk(b"EXIF", exif))


def webp_of_canvas(side):
    """Return a WEBP of a few bytes with a canvas of any size, and one small frame."""
    still = encoded(SMALL, "WEBP")[12:]
    around = b"".join(struct.pack("<I", value)[:3] for value in (0, 0, 19, 11, 0)) + b"\0"
    sides = struct.pack("<I", side - 1)[:3] * 2
    body = b"WEBP" + webp_chunk(b"VP8X", b"\x02\0\0\0" + sides) + webp_chunk(b"ANIM", bytes(6))
    body += webp_chunk(b"ANMF", around + still)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tiff_of_tags(count, block_bytes):
    pixels = bytes(block_bytes)
    return tiff([*gray_tags(8, 1, 64), *tags_at_one_block(count, block_bytes)], pixels)


def tiff_of_tiles(side, width, height, count):
    """Return a gray square of tiles, at least two, that all have the same pixels."""
    pixels = bytes(width * height)
    tags = [tag for tag in gray_tags(side, 1, 1) if tag[0] not in (273, 278, 279)]
    tags += [(322, 4, 1, number(width)), (323, 4, 1, number(height))]
    tags.append((324, 4, count, number(8 + len(pixels))))
    return tiff(tags, pixels + number(8) * count)


def gif_of_comment(size):
    """Return a GIF with a comment of about this many bytes, in blocks of one byte, before it."""
    start = GIF.index(b"\x2c\0\0\0\0")
    return GIF[:start] + b"!\xfe" + b"\1x" * (size // 2) + b"\0" + GIF[start:]


def bitmap(width, height, runs, compression=1):
    """Return a bitmap in run lengths, with a palette of 256 colours, without a file header."""
    bits = 4 if compression == 2 else 8
    fields = (40, width, height, 1, bits, compression, len(runs), 0, 0, 1 << bits, 0)
    return struct.pack("<IiiHHIIiiII", *fields) + bytes(4 << bits) + runs


def bmp_of_runs(width, height, runs, compression=1):
    body = bitmap(width, height, runs, compression)
    start = 14 + len(body) - len(runs)
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, start) + body


#: Skip 255 pixels and 255 rows, end of the picture.
FAR = b"\0\2\xff\xff\0\1"


def _exif():
    return exif_of_tags(4000, 1_000_000)


def _gray(*frames, scan=b"\1\1\0\0\x3f\0"):
    return jpeg_of(*frames, scan=scan)


_PROCESSES = (0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF)
_PLAIN = frame(0xC0, 8, 8)
_COMMENT = segment(0xFE, b"")


_OTHER_FRAME = jpeg_of(_COMMENT, b"\0\xff\0junk\xff\xff" + frame(LOSSLESS, 900, 900))
_FOR_ADOBE = jpeg_of(segment(0xEE, ADOBE), frame(LOSSLESS, 72, 65_336, components=3))

# JPEGs that no decoder may see: file, code
JPEGS = by_name(
    **{
        "unsupported_pixels": {
            **{f"frame {at:X}": partial(lossless_jpeg, 1024, at) for at in _PROCESSES},
            "lossless and small": lambda: lossless_jpeg(8),
            "lossless for Adobe": lambda: _FOR_ADOBE,
            "lossless frame after another": lambda: _gray(_PLAIN, frame(LOSSLESS, 900, 900)),
            "lossless frame after other bytes": lambda: _OTHER_FRAME,
            "12 bits": lambda: _gray(frame(0xC1, 64, 64, bits=12)),
            "16 bits": lambda: _gray(frame(0xC0, 64, 64, bits=16)),
            "in an old TIFF": lambda: tiff_of_jpeg(
                encoded(SMALL.convert("L"), "JPEG"), 20, compression=6
            ),
        },
        "corrupt": {
            "no frame": _gray,
            "two frames": lambda: _gray(_PLAIN, frame(0xC0, 900, 900)),
            "no rows": lambda: _gray(frame(0xC0, 8, 0)),
            "two components": lambda: _gray(frame(0xC0, 8, 8, components=2)),
            "a cut frame": lambda: _gray(_PLAIN[:-1]),
            "a frame that is too short": lambda: _gray(segment(0xC0, b"\x08\0\x08\0\x08\1")),
            "sampling of 5": lambda: _gray(_PLAIN.replace(b"\x11", b"\x51")),
            "a scan of another component": lambda: _gray(_PLAIN, scan=b"\1\2\0\0\x3f\0"),
            "a scan of more components": lambda: _gray(_PLAIN, scan=b"\2\1\0\1\0\0\x3f\0"),
            "tables alone": lambda: b"\xff\xd8" + segment(0xDB, bytes(65)) + b"\xff\xd9" + bytes(9),
        },
    }
)


def _tile(height):
    return struct.pack("<HHII", 323, 4, 1, height)


def _long(tag):
    """Return a TIFF with four million values of a tag."""
    return tiff([*gray_tags(8, 1, 64), (tag, 3, 4_000_000, number(8))], bytes(8_000_000))


_EXIF_PART = b"Exif\0\0" + bytes(60_000)
_RESOURCES = b"Photoshop 3.0\0" + b"8BIM".ljust(12, b"\0") * 5000

# Files that cost much: file, code; "" if the file is accepted
BOMBS = by_name(
    **{
        "": {
            "tiff of a lossless jpeg": lambda: tiff_of_jpeg(lossless_jpeg(512), 512),
            "jpeg with tags": lambda: jpeg_of_exif(_exif()),
            "png with tags": lambda: png_of_exif(_exif()),
            "webp with tags": lambda: webp_of_exif(_exif()),
            "tiff with tags": lambda: tiff_of_tags(4000, 1_000_000),
            "gif with a comment": lambda: gif_of_comment(6_000_000),
            "png with profiles": lambda: png_of_texts(b"iCCP", 28_827),
            "png with texts": lambda: png_of_texts(b"zTXt", 20_000),
            "png with international texts": lambda: png_of_texts(b"iTXt", 20_000),
            "jpeg with comments": lambda: jpeg_of_segments(9000, 0xFE, bytes(1000)),
            "jpeg with parts of a profile": lambda: jpeg_of_profiles(9000),
            "jpeg with parts of Exif": lambda: jpeg_of_segments(450, 0xE1, _EXIF_PART),
            "jpeg with resources": lambda: jpeg_of_segments(450, 0xED, _RESOURCES),
            "png with a long chunk": lambda: png_of(png_chunk(b"cHRM", bytes(28_000_000))),
            "webp with chunks": lambda: webp_of(webp_chunk(b"abcd", b"") * 90_000),
        },
        "unsupported_pixels": {
            "bmp that skips rows": lambda: bmp_of_runs(99_000_000, 1, FAR),
            "4 bit bmp that skips rows": lambda: bmp_of_runs(33_000, 3, FAR, 2),
        },
        "too_many_parts": {
            "tiff with many values": lambda: _long(338),
            "jpeg with tables": lambda: jpeg_of_segments(450, 0xDB, (b"\0" + b"\1" * 64) * 1000),
        },
        "corrupt": {"tiff with a profile of shorts": lambda: _long(34675)},
        "too_many_pixels": {
            "webp with a large canvas": lambda: webp_of_canvas(7_800),
            "tiff with a large tile": lambda: tiff_of_tiles(8, 8, 8, 2).replace(
                _tile(8), _tile(20_000_000)
            ),
        },
    }
)
