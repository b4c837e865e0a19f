"""Limits of one image: parts, pixels of all frames, memory and processor time."""

from __future__ import annotations

import io
import struct
import threading
from pathlib import Path

import pytest
from PIL import Image

from benchmarks import bombs
from recordgen.errors import PayloadError, RunnerError
from recordgen.options import ConvertOptions
from recordgen.payloads import apart as apart_module
from recordgen.payloads import eight_bit
from recordgen.payloads import image as image_module
from recordgen.payloads.budget import MemoryBudget, default_budget
from recordgen.payloads.image import CheckedImage, check_image, prepare
from recordgen.payloads.jpeg import JpegHeader, jpeg_header
from recordgen.storage.memory import memory_limit
from tests.conftest import encoded, noise, run_python

OPTIONS = ConvertOptions()
SMALL = noise(20, 12)
JPEG = encoded(SMALL, "JPEG")
MEMORY = (
    "decoding needs more memory than is free; fewer --threads, a smaller --limit memory=… or a "
    "machine with more memory leave more for each image"
)
PROGRESSIVE = encoded(SMALL, "JPEG", progressive=True)


def refusal(data: bytes, options: ConvertOptions = OPTIONS) -> tuple[str, str]:
    """Return the code and the message of a refused image."""
    with pytest.raises(PayloadError) as caught:
        check_image(data, options)
    return caught.value.code, caught.value.message


def of_blocks(count: int) -> bytes:
    """Return a GIF with one frame and comments: ``count`` blocks in total."""
    gif = encoded(SMALL, "GIF")
    return gif[:-1] + b"!\xfe\0" * (count - gif.count(b"!\xf9") - 1) + b";"


def segments(count: int) -> bytes:
    """Return a JPEG with this many segments before its scan."""
    own, at = 0, 2
    while JPEG[at + 1] != 0xDA:
        own, at = own + 1, at + 2 + int.from_bytes(JPEG[at + 2 : at + 4], "big")
    return JPEG[:2] + b"\xff\xfe\0\2" * (count - own) + JPEG[2:]


def png_of_size(count: int) -> bytes:
    """Return a PNG with this many chunks."""
    return bombs.png_of_chunks(count - 3)


# name: (largest accepted file, smallest refused file), part of the message
PARTS = {
    "jpeg scans": (
        bombs.jpeg_of_scans(64, 99),
        bombs.jpeg_of_scans(64, 100),
        "a JPEG may have at most 100 scans",
    ),
    "jpeg segments": (
        segments(10_000),
        segments(10_001),
        "a JPEG may have at most 10,000 segments before its first scan",
    ),
    "png chunks": (
        png_of_size(1012),
        png_of_size(1013),
        "a PNG of 12,187 bytes may have at most 1,012 chunks",
    ),
    "gif blocks": (
        of_blocks(100_000),
        of_blocks(100_001),
        "a GIF may have at most 100,000 frames and extensions",
    ),
    "tiff strips": (
        bombs.tiff_of_strips(1000),
        bombs.tiff_of_strips(100_001),
        "a TIFF may have at most 100,000 strips or tiles (got 100,001)",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    """A file with the largest number of parts is accepted; with one more, refused undecoded."""
    small, large, words = PARTS[name]
    assert check_image(small, OPTIONS).height
    code, message = refusal(large)
    assert code == "too_many_parts"
    assert words in message


def test_scans_are_counted_where_they_are() -> None:
    """A scan's marker in other segments, or after the end, is not counted."""
    text = b"\xff\xfe" + struct.pack(">H", 2 + 600) + b"\xff\xda" * 300
    start = PROGRESSIVE.index(b"\xff\xda")
    for data in (
        PROGRESSIVE[:2] + text + PROGRESSIVE[2:],
        PROGRESSIVE[:start] + text + PROGRESSIVE[start:],
        PROGRESSIVE + b"\xff\xda" * 300,
    ):
        assert check_image(data, OPTIONS).data == data
    scans = PROGRESSIVE.count(b"\xff\xda")
    assert jpeg_header(PROGRESSIVE) == JpegHeader(12, 20, has_scans=True, scans=scans)
    assert jpeg_header(JPEG) == JpegHeader(12, 20, has_scans=False, scans=1)


@pytest.mark.parametrize("layout", ["<HLHHL", ">HLHHL", "<QQHHQ", ">QQHHQ"])
@pytest.mark.parametrize("tag", [273, 324])
def test_strips_of_every_layout(layout: str, tag: int) -> None:
    """Strips and tiles are counted in both byte orders, with offsets of 4 and 8 bytes."""
    order, number, offset, entry, count = layout[0], layout[1], layout[2], "HH", layout[5]
    big = offset == "Q"
    magic = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    head = magic + (struct.pack(order + "HHQ", 8, 0, 16) if big else struct.pack(order + "L", 8))
    entries = struct.pack(order + number, 1)
    entries += struct.pack(order + entry + count, tag, 4, 123_456) + bytes(8 if big else 4)
    code, message = refusal(head + entries + bytes(20))
    assert (code, "got 123,456" in message) == ("too_many_parts", True)


def test_pixels_of_all_frames() -> None:
    """The frames of a GIF may have together ten times the pixels of an image."""
    data = bombs.gif_of_frames(20, 10, 12)  # 1,200 pixels in frames on a canvas of 400
    assert check_image(data, ConvertOptions(limit="pixels=400")).reencoded == "gif"
    code, message = refusal(bombs.gif_of_frames(10, 10, 11), ConvertOptions(limit="pixels=100"))
    assert code == "too_many_pixels"
    assert message == (
        "the frames of a GIF must have at most 1,000 pixels together (got 1,100 in 11 frames); "
        "--limit pixels=… allows more"
    )


def test_icons_say_how_large_they_are() -> None:
    """An icon's header has no room for large sizes: the sizes of its images count."""
    png = encoded(noise(300, 200), "PNG")
    few = ConvertOptions(limit="pixels=59999")
    assert refusal(bombs.ico_of_png(png), few)[0] == "too_many_pixels"
    bitmap = encoded(noise(48, 48), "ICO", sizes=[(48, 48)], bitmap_format="bmp")
    assert check_image(bitmap, ConvertOptions(limit=f"pixels={48 * 48}")).reencoded == "format"
    assert refusal(bitmap, ConvertOptions(limit=f"pixels={48 * 48 - 1}"))[0] == "too_many_pixels"
    chunks = bombs.ico_of_png(bombs.png_of_chunks(2000))
    assert refusal(chunks)[0] == "too_many_parts"


@pytest.mark.parametrize("data", [JPEG, encoded(SMALL, "PNG"), encoded(SMALL, "WEBP")])
@pytest.mark.parametrize(("size", "pixels"), [("", 20 * 12), ("5x8", 5 * 8)])
def test_memory_of_the_encoder(data: bytes, size: str, pixels: int) -> None:
    """libwebp takes 11 bytes for each stored pixel (measured on 36 megapixels)."""
    webp, png = (
        prepare(data, ConvertOptions(encode=encode, image_size=size)).bytes
        for encode in ("webp", "png")
    )
    assert webp - png == 11 * pixels


def test_memory_is_shared() -> None:
    """Threads together hold at most the budget; an image that exceeds it is decoded on its own."""
    budget, most = MemoryBudget(), 100
    inside, leave = threading.Event(), threading.Event()
    order: list[str] = []

    def hold(name: str, size: int) -> None:
        with budget.hold(size, most):
            order.append(name)
            inside.set()
            leave.wait(10)

    first = threading.Thread(target=hold, args=("first", 60))
    first.start()
    assert inside.wait(10)
    inside.clear()
    others = [
        threading.Thread(target=hold, args=("fits", 40)),
        threading.Thread(target=hold, args=("more than all", 500)),
    ]
    for thread in others:
        thread.start()
    assert inside.wait(10)
    assert order == ["first", "fits"]
    leave.set()
    for thread in (first, *others):
        thread.join(10)
    assert order == ["first", "fits", "more than all"]


def test_memory_goes_back() -> None:
    """Two threads that decode large images in turn take little more memory than one."""
    code = """
import io, resource, threading
from PIL import Image
from recordgen.options import ConvertOptions
from recordgen.payloads.image import check_image

file = io.BytesIO()
Image.new("RGBA", (4000, 4000), (1, 2, 3, 4)).save(file, "PNG", compress_level=1)

def check(images):
    for _ in range(images):
        check_image(file.getvalue(), ConvertOptions(limit="memory=1"))

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

check(1)
before = peak()
threads = [threading.Thread(target=check, args=(3,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(peak() - before)
"""
    more = int(run_python("-c", code).stdout)
    assert more < 64_000_000, more  # bytes of the decoded image


def test_pillow_is_set_up_by_the_first_image() -> None:
    """An import changes nothing for the other images of a process."""
    code = """
import sys
from PIL import Image
default = Image.core.get_block_size()
from recordgen.options import ConvertOptions
from recordgen.payloads.image import prepare
assert Image.core.get_block_size() == default
prepare(bytes.fromhex(sys.argv[1]), ConvertOptions())
assert Image.core.get_block_size() > 32 << 20
"""
    done = run_python("-c", code, JPEG.hex())
    assert done.returncode == 0, done.stderr


def test_default_budget() -> None:
    """A process gets its share of the memory of the machine, or of its control group."""
    assert 256_000_000 <= default_budget() <= max(256_000_000, memory_limit() // 2)
    assert ConvertOptions().limit.memory_bytes is None
    assert ConvertOptions(limit="memory=1.5").limit.memory_bytes == 1_500_000


def test_apart_is_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An image that announces much work is checked in another process, with the same result.

    The log names slow images.
    """
    caplog.set_level("INFO", "recordgen")
    monkeypatch.setattr(apart_module, "SILENT_SECONDS", 0.01)
    data = encoded(noise(40, 30), "WEBP")
    apart: list[int] = []

    def check_apart(data: bytes, options: ConvertOptions, uri: str) -> CheckedImage:
        apart.append(len(data))
        return original(data, options, uri)

    here = check_image(data, OPTIONS)
    original = image_module.check_apart
    monkeypatch.setattr(image_module, "check_apart", check_apart)
    monkeypatch.setattr(image_module, "APART_SHARE", 0)
    there = check_image(data, OPTIONS, "slow.webp")
    assert caplog.messages == ["slow.webp is slow to check: it may take 20 s of processor time"]
    assert apart == [len(data)]
    assert there._replace(small=None) == here._replace(small=None)
    damaged = encoded(noise(40, 30), "JPEG")[:500]
    monkeypatch.setattr(image_module, "APART_SHARE", 1)
    said = refusal(damaged)
    monkeypatch.setattr(image_module, "APART_SHARE", 0)
    assert refusal(damaged) == said


def test_too_slow() -> None:
    """A decoder is killed during its work; the message names the option."""
    data = bombs.of_one_colour("WEBP", "RGB", 2500)
    assert refusal(data, ConvertOptions(limit="seconds=0.05")) == (
        "too_slow",
        "an image must be decoded and checked within 0.05 s of processor time; --limit seconds=… "
        "allows more",
    )


# signal that ends the process of a decoder, code and message of the refusal
DEATHS = [
    ("SEGV", "corrupt", "the decoder crashed (SIGSEGV)"),
    ("ABRT", "corrupt", "the decoder crashed (SIGABRT)"),
    ("TRAP", "corrupt", "the decoder crashed (SIGTRAP)"),
    ("KILL", "out_of_memory", MEMORY),
]


@pytest.mark.parametrize(("signal", "code", "message"), DEATHS)
def test_a_decoder_that_crashes(
    signal: str, code: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its own process, it ends neither the run nor the worker."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat > /dev/null\nkill -{signal} $$\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    monkeypatch.setattr(image_module, "APART_SHARE", 0)
    assert refusal(JPEG) == (code, message)


def test_a_process_that_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that stops the run is no fault of the image."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\ncat > /dev/null\nkill -TERM $$\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    monkeypatch.setattr(image_module, "APART_SHARE", 0)
    with pytest.raises(RunnerError):
        check_image(JPEG, OPTIONS)


@pytest.mark.parametrize("name", ["decoded_jpeg", "file_header", "open_image", "encoded"])
def test_memory_that_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever memory ends, only the image is refused."""

    def starve(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr(image_module, name, starve)
    data = JPEG if name == "decoded_jpeg" else encoded(SMALL, "WEBP")
    assert refusal(data) == ("out_of_memory", MEMORY)


def test_flattening_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows at a time are flattened on white; each row exactly once."""
    glass = noise(9, 10)
    glass.putalpha(noise(9, 10, seed=1).convert("L"))
    white = Image.new("RGBA", glass.size, "white")
    expected = Image.alpha_composite(white, glass).convert("RGB")
    for rows in (1, 3, 5, 10, 11):
        monkeypatch.setattr(eight_bit, "FLATTENED_ROWS", rows)
        stored = Image.open(io.BytesIO(check_image(encoded(glass, "PNG"), OPTIONS).data))
        assert stored.tobytes() == expected.tobytes()
