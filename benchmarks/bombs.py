"""The cost of small files that announce much: processor time and memory of the image check.

    python -m benchmarks.bombs
    python -m benchmarks.bombs --only "png of a million chunks" --limit 60

Each bomb is made here and checked in its own process, which is killed after ``--limit`` seconds.
Memory is the peak of that process, or of the process in which it checks an image that announces
much work, minus the peak before the check.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence

from PIL import Image

SIDE = 9984  # just below the default limit of 100 million pixels


def png_chunk(kind: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def large_png(side: int = SIDE, colour_type: int = 6, alpha: int = 200) -> bytes:
    """Return a PNG with a single transparent colour, or gray (colour type 0)."""
    row = b"\0" + (bytes([90, 120, 30, alpha]) if colour_type == 6 else b"\x5a") * side
    squeeze = zlib.compressobj(9)
    body = b"".join(squeeze.compress(row) for _ in range(side)) + squeeze.flush()
    header = struct.pack(">IIBBBBB", side, side, 8, colour_type, 0, 0, 0)
    chunks = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", body) + png_chunk(b"IEND")
    return b"\x89PNG\r\n\x1a\n" + chunks


def png_of_chunks(count: int) -> bytes:
    """Return a PNG with one pixel and ``count`` chunks of private data."""
    out = io.BytesIO()
    Image.new("L", (1, 1)).save(out, "PNG")
    data = out.getvalue()
    return data[:33] + png_chunk(b"prIv") * count + data[33:]


def gif_of_frames(side: int, frame_side: int, count: int) -> bytes:
    """Return a GIF in one colour with ``count`` square frames at the top left of its canvas."""
    still, out = io.BytesIO(), io.BytesIO()
    Image.new("P", (frame_side, frame_side)).save(still, "GIF")
    Image.new("P", (side, side)).save(out, "GIF")
    frame = still.getvalue()
    frame = frame[frame.index(b"\x2c\0\0\0\0") : -1]
    canvas = out.getvalue()
    return canvas[: canvas.index(b"\x2c\0\0\0\0")] + frame * count + b";"


def jpeg_of_scans(side: int, count: int) -> bytes:
    """Return a gray progressive JPEG that codes its coefficients, all zero, ``count`` times."""

    def segment(marker: int, body: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body

    def bits(text: str) -> bytes:
        text += "1" * (-len(text) % 8)
        data = int(text, 2).to_bytes(len(text) // 8, "big")
        return data.replace(b"\xff", b"\xff\0")

    squares = (-(-side // 8)) ** 2
    one_code = b"\1" + bytes(15)  # a Huffman table with a single code of one bit
    runs, rest = divmod(squares, 32767)
    # EOB14, a run of 16,384 blocks plus the number in 14 bits; EOB0, a single block, is 1 0
    ac = ("0" + "1" * 14) * runs + "10" * rest
    two_codes = b"\1\1" + bytes(14)
    scan = segment(0xDA, b"\1\1\0\1\x3f\0") + bits(ac)
    return b"".join(
        (
            b"\xff\xd8",
            segment(0xDB, b"\0" + b"\1" * 64),
            segment(0xC2, struct.pack(">BHHBBBB", 8, side, side, 1, 1, 0x11, 0)),
            segment(0xC4, b"\0" + one_code + b"\0"),
            segment(0xC4, b"\x10" + two_codes + b"\xe0\0"),
            segment(0xDA, b"\1\1\0\0\0\0"),
            bits("0" * squares),
            scan * count,
            b"\xff\xd9",
        )
    )


def of_one_colour(kind: str, mode: str, side: int = SIDE, **settings: object) -> bytes:
    """Return a large image in one colour."""
    out = io.BytesIO()
    Image.new(mode, (side, side), 90).save(out, kind, **settings)
    return out.getvalue()


def tiff_of_strips(count: int) -> bytes:
    """Return a gray TIFF one pixel wide, with one strip for each row."""
    offsets = struct.pack("<I", 8) * count
    table = 8 + 8
    tags = [
        (256, 4, 1, 1),
        (257, 4, 1, count),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, count, table),
        (277, 3, 1, 1),
        (278, 4, 1, 1),
        (279, 4, count, table + len(offsets)),
    ]
    sizes = struct.pack("<I", 1) * count
    at = table + len(offsets) + len(sizes)
    ifd = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<I", at) + bytes(8) + offsets + sizes + ifd + bytes(4)


BOMBS: dict[str, Callable[[], bytes]] = {
    "gif of 20,000 small frames": lambda: gif_of_frames(9900, 1, 20_000),
    "gif of 400 large frames": lambda: gif_of_frames(9900, 9900, 400),
    "jpeg of 1,000 scans": lambda: jpeg_of_scans(SIDE, 1000),
    "png of a million chunks": lambda: png_of_chunks(1_000_000),
    "png of 100 million pixels": large_png,
    "png of 100 million gray pixels": lambda: large_png(colour_type=0),
    "webp of 100 million pixels": lambda: of_one_colour("WEBP", "RGB", lossless=True),
    "tiff of 100 million pixels": lambda: of_one_colour("TIFF", "RGBA", compression="tiff_lzw"),
    "cmyk jpeg of 100 million pixels": lambda: of_one_colour("JPEG", "CMYK"),
    "tiff of 3 million strips": lambda: tiff_of_strips(3_000_000),
}


def check_bomb() -> None:
    """Check the bomb on stdin; print processor seconds, peak in MB and outcome as JSON."""
    from recordgen.conversion.api import payloads_of
    from recordgen.errors import PayloadError
    from recordgen.options import ConvertOptions
    from recordgen.payloads.check import check_image

    settings = payloads_of(ConvertOptions())
    data = sys.stdin.buffer.read()
    before = _peak_bytes()
    started = _seconds()
    try:
        stored = check_image(data, settings)
        outcome = f"accepted as {stored.format}, {stored.reencoded or 'own bytes'}"
    except PayloadError as exc:
        outcome = f"{exc.code}: {exc.message}"
    seconds = _seconds() - started
    print(json.dumps([seconds, (_peak_bytes() - before) / 1e6, outcome]))


def _peak_bytes() -> int:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) * 1024


def _seconds() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = map(resource.getrusage, kinds)
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BOMBS, default=list(BOMBS), metavar="NAME")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each bomb")
    parser.add_argument("--make", choices=BOMBS, help="write one to stdout")
    parser.add_argument("--check", action="store_true", help="check one from stdin")
    args = parser.parse_args(argv)
    if args.make:
        sys.stdout.buffer.write(BOMBS[args.make]())
    elif args.check:
        check_bomb()
    else:
        print(f"{'bomb':<38} {'kB':>7} {'CPU s':>6} {'MB':>6}  outcome")
        for name in args.only:
            print(f"{name:<38} {_figures(name, args.limit)}", flush=True)


def _figures(name: str, limit: float) -> str:
    command = [sys.executable, "-m", "benchmarks.bombs"]
    # Make it in another process: on Linux, a process starts with the peak of its parent.
    data = subprocess.run([*command, "--make", name], stdout=subprocess.PIPE, check=True).stdout
    try:
        done = subprocess.run(
            [*command, "--check"], input=data, capture_output=True, timeout=limit, check=True
        )
    except subprocess.TimeoutExpired:
        figures = f"{'>':>1}{limit:>5.0f} {'?':>6}  did not end"
    except subprocess.CalledProcessError as exc:
        figures = f"{'?':>6} {'?':>6}  died: {exc.stderr.decode()[-200:]}"
    else:
        seconds, peak_mb, outcome = json.loads(done.stdout)
        figures = f"{seconds:>6.2f} {peak_mb:>6.0f}  {outcome}"
    return f"{len(data) / 1e3:>7.0f} {figures}"


if __name__ == "__main__":
    main()
