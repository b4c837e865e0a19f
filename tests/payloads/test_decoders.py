"""No file makes a decoder write beyond its buffers, or take memory or work without bound."""

import ast
import io
import json
import struct
import sys
import tracemalloc
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import simplejpeg
from PIL import Image

from benchmarks import bombs
from benchmarks.mutants import images
from recordgen.errors import PayloadError
from recordgen.payloads.check import check_image, prepare
from recordgen.payloads.drawing import draw_boxes, to_thumbnail
from recordgen.payloads.header import exif_orientation
from recordgen.payloads.jpeg import MAX_SEGMENTS
from recordgen.payloads.opening import file_header, open_image
from tests.conftest import COMPONENTS, encoded, exif_of, noise, run_python
from tests.payloads import hostile
from tests.payloads.refusals import refusal
from tests.payloads.test_png import header
from tests.settings import payload_settings

# Modules of the package that call a decoder, and why.
CALLERS = {
    "Image.open": {
        "access/decode.py": "Pillow compares the size in the header with its limit",
        "payloads/check.py": "reads the header first, by jpeg_header",
        "payloads/opening.py": "reads the header first",
        "tasks/pairing.py": "Pillow compares the size in the header",
    },
    "simplejpeg": {
        "access/decode.py": "reads the header first",
        "payloads/check.py": "reads the frame first",
        "core/shards.py": "uses the version only",
    },
}

# Run every example through every door in one process, with 300 MB more than it has after imports.
_UNDER_A_LIMIT = """
import json, resource, sys
from recordgen.errors import PayloadError
from recordgen.core.image_settings import Limits
from recordgen.core.image_settings import PayloadSettings
from tests.settings import payload_settings
from recordgen.payloads.drawing import draw_boxes
from recordgen.payloads.check import check_image, picture_in_small
from recordgen.payloads.drawing import to_thumbnail
from tests.payloads import hostile

DOORS = {
    "decode": lambda data: check_image(data, payload_settings()),
    "small": lambda data: check_image(data, payload_settings(check="header", image_size="9max")),
    "near": lambda data: picture_in_small(data, PayloadSettings(limit=Limits(), needs_looks=True)),
    "none": lambda data: check_image(data, payload_settings(check="none")),
    "thumbnail": lambda data: to_thumbnail(data, 64),
    "drawing": lambda data: draw_boxes(data, ()),
}

def code(door, data):
    try:
        door(data)
        return ""
    except PayloadError as exc:
        return exc.code

payload_settings()  # options load all checks, and with them Arrow
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)
for name, (make, _) in getattr(hostile, sys.argv[1]).items():
    data = make()
    print(json.dumps([name, {key: code(door, data) for key, door in DOORS.items()}]), flush=True)
"""


def under_a_limit(examples):
    """Return the codes of examples by name and door."""
    done = run_python("-c", _UNDER_A_LIMIT, examples, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_jpegs_that_no_decoder_may_see():
    """Each door refuses them by their header, and none calls a decoder."""
    found = under_a_limit("JPEGS")
    assert found.keys() == hostile.JPEGS.keys()
    for name, (make, code) in hostile.JPEGS.items():
        assert refusal(make(), file_header) == code
        kept = code if code == "unsupported_pixels" else ""  # check=none keeps broken files
        expected = dict.fromkeys(("decode", "small", "thumbnail", "drawing"), code)
        assert found[name] == {**expected, "near": "", "none": kept}, name


def test_costly_files_are_refused_or_read_in_little_memory():
    """Each file ends with its code, or is read, with 300 MB more than after imports."""
    found = under_a_limit("BOMBS")
    assert {name: codes["decode"] for name, codes in found.items()} == {
        name: code for name, (_, code) in hostile.BOMBS.items()
    }


def test_every_call_of_a_decoder_reads_the_header_first():
    """The modules that call a decoder are listed with the reason why this is safe."""
    package = COMPONENTS / "recordgen"
    found = {name: set() for name in CALLERS}
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if "simplejpeg" in names:
                found["simplejpeg"].add(path.relative_to(package).as_posix())
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Image.open":
                found["Image.open"].add(path.relative_to(package).as_posix())
    assert found == {name: set(modules) for name, modules in CALLERS.items()}


# Files of many parts, of which what is left for Pillow has one size.
DROPPED = {
    "jpeg tags": lambda n: hostile.jpeg_of_exif(hostile.exif_of_tags(n, n * 1000)),
    "jpeg comments": lambda n: hostile.jpeg_of_segments(n, 0xFE, b"x" * 100),
    "png compressed texts": lambda n: hostile.png_of_texts(b"zTXt", n, 10_000),
    "png private chunks": lambda n: hostile.png_of(hostile.png_chunk(b"prIv", bytes(99)) * n),
    "gif comment": lambda n: hostile.gif_of_comment(n * 20),
    "gif frames": lambda n: bombs.gif_of_frames(8, 8, n),
}

# Files of which Pillow gets all parts.
KEPT = {
    "jpeg tables": lambda n: hostile.jpeg_of_segments(n, 0xDB, bytes([0]) + bytes([1]) * 64),
    "jpeg profile": lambda n: hostile.jpeg_of_profiles(n),
    "png pixel chunks": lambda n: hostile.png_of(hostile.png_chunk(b"IDAT") * n),
    "webp tags": lambda n: hostile.webp_of_exif(hostile.exif_of_tags(n, n * 1000)),
    "webp chunks": lambda n: hostile.webp_of(hostile.webp_chunk(b"abcd", bytes(100)) * n),
    "tiff tags": lambda n: hostile.tiff_of_tags(n, n * 1000),
    "tiff strips": bombs.tiff_of_strips,
}


def work(data):
    """Return the lines of Python that check a file, and the peak of its memory in bytes."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        lines += event == "line"
        return trace

    tracemalloc.start()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(PayloadError):
            check_image(data, payload_settings())
    finally:
        sys.settrace(before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return lines, peak


@pytest.mark.parametrize("name", [*DROPPED, *KEPT])
def test_twice_the_parts_take_twice_the_work(name):
    """Lines of Python and memory grow no faster than the number of parts."""
    make, count = {**DROPPED, **KEPT}[name], 60
    with suppress(PayloadError):
        check_image(make(1), payload_settings())  # Pillow loads its plug-ins
    small, large = make(count), make(2 * count)
    for once, twice in zip(work(small), work(large), strict=True):
        assert twice <= 2.5 * once + 1000
    once, twice = (len(file_header(data).data) for data in (small, large))
    assert once == twice if name in DROPPED else twice <= 2.5 * once


_PICTURE, _OTHER = noise(20, 12), noise(20, 12, seed=1)
_PALETTE = _PICTURE.quantize(16)
# More images than those that benchmarks/mutants.py damages.
FURTHER = {
    "tiff with separate planes": encoded(_PICTURE, "TIFF", tiffinfo={284: 2}),
    "palette tiff": encoded(_PALETTE, "TIFF"),
}


@pytest.mark.parametrize("name", sorted({*images(), *FURTHER}))
def test_what_is_left_decodes_to_the_same_pixels(name):
    """Parts that are dropped before Pillow change neither format, mode, size nor pixels."""
    data = {**images(), **FURTHER}[name]
    whole, left = Image.open(io.BytesIO(data)), open_image(file_header(data))
    assert (left.format, left.mode, left.size) == (whole.format, whole.mode, whole.size)
    assert left.info.get("transparency") == whole.info.get("transparency")
    assert left.convert("RGBA").tobytes() == whole.convert("RGBA").tobytes()


def test_orientations():
    """As in browsers: a single SHORT from 1 to 8 in the first directory, in both byte orders."""
    for orientation in range(10):
        expected = orientation if 1 <= orientation <= 8 else 1
        exif = exif_of(orientation)
        assert exif_orientation(exif.tobytes()) == expected
        exif.endian = ">"
        assert exif_orientation(exif.tobytes()) == expected
    value = struct.pack("<H", 6)
    others = [(0x0112, 4, 1, value), (0x0112, 3, 2, value * 2), (0x0112, 1, 1, value)]
    for tag in (*others, (0x0112, 11, 1, struct.pack("<f", 6)), (0x0113, 3, 1, value)):
        assert exif_orientation(hostile.tiff([tag], b"")) == 1
    both = hostile.tiff([(0x0112, 3, 1, b"\3\0"), (0x0112, 3, 1, value)], b"")
    assert exif_orientation(both) == 3
    for end in range(len(both) - 20):
        assert exif_orientation(both[:end]) == 1
    assert exif_orientation(b"II*\0\xff\xff\xff\xff" + both[8:]) == 1


def test_only_exif_turns_an_image():
    """An orientation in XMP changes nothing, as in browsers."""
    xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    files = (
        hostile.jpeg_of_segments(1, 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp),
        hostile.png_of(hostile.png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)),
    )
    for data in files:
        stored = check_image(data, payload_settings())
        assert (stored.data, stored.orientation) == (data, 1)


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw"])
def test_tiffs_are_turned_once(compression):
    """Pillow turns some TIFFs itself: the stored picture is upright all the same."""
    picture = noise(20, 12)
    data = encoded(picture, "TIFF", compression=compression, tiffinfo={0x0112: 6})
    stored = check_image(data, payload_settings())
    assert (stored.height, stored.width, stored.orientation) == (20, 12, 6)
    upright = picture.transpose(Image.Transpose.ROTATE_270)
    assert Image.open(io.BytesIO(stored.data)).tobytes() == upright.tobytes()


def test_the_estimated_time_counts_tiles_and_scans():
    """The estimate grows with the parts that are decoded, and bounds previews, too."""
    tiles = [
        prepare(hostile.tiff_of_tiles(800, 400, 800, count), payload_settings())
        for count in (2, 90_000)
    ]
    assert tiles[1].seconds > 10_000 * tiles[0].seconds
    assert tiles[1].bytes == tiles[0].bytes
    scans = [
        prepare(hostile.tiff_of_jpeg(bombs.jpeg_of_scans(64, count), 64), payload_settings())
        for count in (1, 90)
    ]
    assert scans[1].seconds > 40 * scans[0].seconds
    many = hostile.tiff_of_tiles(800, 400, 800, 90_000)
    assert refusal(many, partial(to_thumbnail, side=64)) == "too_many_pixels"


def test_a_file_with_two_sizes_is_not_decoded(monkeypatch):
    """Two headers that contradict each other are a reject before a decoder is called."""
    second = header(900, 900, 8, 2)
    with pytest.raises(PayloadError, match="20×12, and 900×900"):
        check_image(hostile.png_of(second), payload_settings(check="header"))
    monkeypatch.setattr(simplejpeg, "decode_jpeg_header", lambda _: (900, 900, "YCbCr", "420"))
    monkeypatch.delattr(simplejpeg, "decode_jpeg")
    with pytest.raises(PayloadError, match="20×12, and 900×900"):
        check_image(hostile.JPEG, payload_settings())


EMPTY = {
    "png": hostile.PNG[:16] + bytes(4) + hostile.PNG[20:],
    "gif": hostile.GIF[:6] + bytes(4) + b"\0\0\0,\0\0\0\0\0\0\0\0\0\2\0;",
    "bmp": hostile.bmp_of_runs(0, 4, b"\0\1", 0),
    "flat bmp": hostile.bmp_of_runs(4, 0, b"\0\1", 0),
    "tiff": hostile.tiff(hostile.gray_tags(0, 1, 1), bytes(8)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_pictures_without_pixels_are_refused_before_opening(name):
    """A width or height of zero is a reject for each format."""
    assert refusal(EMPTY[name], partial(draw_boxes, boxes=())) == "corrupt"


def test_several_scans_keep_all_coefficients():
    """The estimated memory has all coefficients of a JPEG with several scans."""
    photo = encoded(noise(64, 64), "JPEG", subsampling=0)
    start = photo.index(b"\xff\xda")
    parts = photo[:start] + hostile.segment(0xDA, b"\1\1\0\0\x3f\0") + photo[start + 14 :]
    assert prepare(parts, payload_settings()).bytes == 8 * 64 * 64
    assert prepare(photo, payload_settings()).bytes < 64 * 64


def test_fill_bytes_are_counted():
    """Bytes between the segments of a JPEG count like segments."""
    few, many = (
        hostile.JPEG[:2] + b"\xff" * count + hostile.JPEG[2:]
        for count in (MAX_SEGMENTS // 2, MAX_SEGMENTS)
    )
    assert check_image(few, payload_settings()).data == few
    assert refusal(many) == "too_many_parts"


def test_the_first_picture_of_a_file_is_the_jpeg():
    """An MPO of several pictures is stored as it is, and read as its first picture."""
    data = encoded(_PICTURE, "MPO", save_all=True, append_images=[_OTHER])
    assert check_image(data, payload_settings()).data == data
    assert open_image(file_header(data)).tobytes() == Image.open(io.BytesIO(data)).tobytes()
