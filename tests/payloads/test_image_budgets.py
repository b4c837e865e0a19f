"""Limits of one image: parts, pixels of all frames, memory and processor time."""

import struct
import threading
import zipfile
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import recordgen
from benchmarks import bombs
from recordgen.core import image_settings
from recordgen.core.allowance import memory_limit
from recordgen.core.limits import ROW, Limit
from recordgen.errors import PayloadError, RunnerError
from recordgen.payloads import check, reencoding
from recordgen.payloads.check import MemoryBudget, check_apart, check_image, default_budget
from recordgen.payloads.jpeg import jpeg_header
from recordgen.payloads.reencoding import flattened
from tests.conftest import encoded, error_of, noise, write_file, write_noise
from tests.settings import payload_settings

OPTIONS = payload_settings()
SMALL = noise(20, 12)
JPEG = encoded(SMALL, "JPEG")
PROGRESSIVE = encoded(SMALL, "JPEG", progressive=True)
SLOW = payload_settings(limit="seconds=0.05")


def refusal(data, options=OPTIONS):
    """Return the code and the message of a refused image."""
    error = error_of(PayloadError, check_image, data, replace(options))  # in a run of its own
    return error.code, error.message


def segments(count):
    """Return a JPEG with this many segments before its scan."""
    own, at = 0, 2
    while JPEG[at + 1] != 0xDA:
        own, at = own + 1, at + 2 + int.from_bytes(JPEG[at + 2 : at + 4], "big")
    return JPEG[:2] + b"\xff\xfe\0\2" * (count - own) + JPEG[2:]


# name: largest accepted file, smallest refused file
PARTS = {
    "jpeg scans": (bombs.jpeg_of_scans(64, 99), bombs.jpeg_of_scans(64, 100)),
    "jpeg segments": (segments(10_000), segments(10_001)),
    "png chunks": (bombs.png_of_chunks(1009), bombs.png_of_chunks(1010)),
    "tiff strips": (bombs.tiff_of_strips(1000), bombs.tiff_of_strips(200_001)),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_more_than_allowed_is_refused_before_decoding(name):
    """The largest accepted number of parts decodes, one more is a reject."""
    small, large = PARTS[name]
    assert check_image(small, OPTIONS).height
    assert refusal(large)[0] == "too_many_parts"


def test_scans_are_counted_where_they_are():
    """Markers inside texts and behind the end are no scans."""
    text = b"\xff\xfe" + struct.pack(">H", 2 + 600) + b"\xff\xda" * 300
    start = PROGRESSIVE.index(b"\xff\xda")
    for data in (
        PROGRESSIVE[:2] + text + PROGRESSIVE[2:],
        PROGRESSIVE[:start] + text + PROGRESSIVE[start:],
        PROGRESSIVE + b"\xff\xda" * 300,
    ):
        assert check_image(data, OPTIONS).data == data
    scans = PROGRESSIVE.count(b"\xff\xda")
    for data, has_scans, count in ((PROGRESSIVE, True, scans), (JPEG, False, 1)):
        found = jpeg_header(data)
        assert (found.height, found.width) == (12, 20)
        assert (found.has_scans, found.scans) == (has_scans, count)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("tag", [273, 324])
def test_strips_and_tiles_are_counted_in_both_byte_orders(order, tag):
    """Offsets of strips and tiles are counted before Pillow reads them."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "L", 8)
    entries = struct.pack(order + "HHHLL", 1, tag, 4, 234_567, 0)
    code, message = refusal(head + entries + bytes(20))
    assert (code, "got 234,567" in message) == ("too_many_parts", True)


def test_threads_together_hold_at_most_the_budget():
    """A picture waits for room; one larger than all memory waits until it is alone."""
    budget, most = MemoryBudget(), 100
    inside, leave = threading.Event(), threading.Event()
    order = []

    def hold(name, size):
        with budget.hold(size, most):
            order.append(name)
            inside.set()
            leave.wait(60)

    first = threading.Thread(target=hold, args=("first", 60))
    first.start()
    assert inside.wait(60)
    inside.clear()
    others = [
        threading.Thread(target=hold, args=("fits", 40)),
        threading.Thread(target=hold, args=("more than all", 500)),
    ]
    for thread in others:
        thread.start()
    assert inside.wait(60)
    assert order == ["first", "fits"]
    leave.set()
    for thread in (first, *others):
        thread.join(60)
    assert order == ["first", "fits", "more than all"]


def test_default_budget():
    """It is at least 256 MB, and at most half of the machine's memory."""
    assert 256_000_000 <= default_budget() <= max(256_000_000, memory_limit() // 2)
    assert payload_settings().limit.memory_bytes is None
    assert payload_settings(limit="memory=1.5").limit.memory_bytes == 1_500_000


def test_the_result_of_another_process_is_the_same():
    """An image or a refusal."""
    data = encoded(noise(40, 30), "WEBP")
    there = check_apart(data, OPTIONS)
    assert there._replace(small=None) == check_image(data, OPTIONS)._replace(small=None)
    damaged = encoded(noise(40, 30), "JPEG")[:500]
    error = error_of(PayloadError, check_apart, damaged, OPTIONS)
    assert (error.code, error.message) == refusal(damaged)


def test_a_slow_decoder_is_killed():
    """The reject names the option that allows more time."""
    code, message = refusal(bombs.of_one_colour("WEBP", "RGB", 2500), SLOW)
    assert (code, "--limit seconds=" in message) == ("too_slow", True)


def killed_by(signal, tmp_path, monkeypatch, name="python"):
    """Make the process of a decoder end with this signal."""
    python = write_file(tmp_path / name, f"#!/bin/sh\ncat > /dev/null\nkill -{signal} $$\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))


@pytest.mark.parametrize("signal", ["SEGV", "ABRT", "TRAP"])
def test_a_decoder_that_crashes_ends_neither_the_run_nor_the_worker(signal, tmp_path, monkeypatch):
    """The image is a reject that names the signal."""
    killed_by(signal, tmp_path, monkeypatch)
    error = error_of(PayloadError, check_apart, JPEG, OPTIONS)
    assert (error.code, f"SIG{signal}" in error.message) == ("corrupt", True)


def test_a_decoder_that_the_system_kills_needed_too_much_memory(tmp_path, monkeypatch):
    """Images that announce much work are checked in another process."""
    killed_by("KILL", tmp_path, monkeypatch)
    slow = bombs.of_one_colour("WEBP", "RGB", 2500)
    assert refusal(slow, SLOW)[0] == "out_of_memory"
    killed_by("KILL", tmp_path, monkeypatch, "uwsgi")  # this program has no Python to start
    assert check_image(slow, SLOW).small is not None


def test_a_process_that_is_stopped(tmp_path, monkeypatch):
    """A signal that stops the run is no fault of the image."""
    killed_by("TERM", tmp_path, monkeypatch)
    with pytest.raises(RunnerError):
        check_apart(JPEG, OPTIONS)


# module, name
ALLOCATIONS = [
    (check, "decoded_jpeg"),
    (check, "file_header"),
    (check, "open_image"),
    (reencoding, "encoded"),
]


@pytest.mark.parametrize(("module", "name"), ALLOCATIONS)
def test_only_the_image_is_refused_when_memory_ends(module, name, monkeypatch):
    """Wherever memory ends, the reject names the option."""

    def starve(*_):
        raise MemoryError

    monkeypatch.setattr(module, name, starve)
    code, message = refusal(JPEG if name == "decoded_jpeg" else encoded(SMALL, "WEBP"))
    assert (code, "--limit memory=" in message) == ("out_of_memory", True)


def test_each_row_is_flattened_once():
    """Transparent pixels are the same in strips of any height."""
    glass = noise(9, 10)
    glass.putalpha(noise(9, 10, seed=1).convert("L"))
    white = Image.new("RGBA", glass.size, "white")
    expected = Image.alpha_composite(white, glass).convert("RGB")
    for rows in (1, 3, 5, 10, 11):
        assert flattened(glass, rows).tobytes() == expected.tobytes()


def blank(number):
    """Return 4 megapixels of one colour but for one of them."""
    picture = Image.new("L", (2000, 2000))
    picture.putpixel((number, 0), 1)
    return encoded(picture, "PNG")


def of_archive(folder):
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"{'ab'[number % 2]}/{number}.png", blank(number))
    return folder / "a.zip"


def of_values(folder, picture=blank):
    files = [{"bytes": picture(number), "path": f"{number}.png"} for number in range(40)]
    table = pa.table({"image": files, "label": [0, 1] * 20})
    pq.write_table(table, folder / "a.parquet", compression="zstd")
    return folder / "a.parquet"


def of_one_value(folder):
    return of_values(folder, lambda number: blank(1))


def of_one_name(folder):
    (folder / "x").mkdir()
    (folder / "a.png").write_bytes(blank(1))
    names = (f"{'x/../' * number}a.png,{number % 2}\n" for number in range(40))
    (folder / "a.csv").write_text("".join(names))
    return folder / "a.csv"


def of_photos(folder):
    write_noise(folder, range(40), 300, 200)
    (folder / "a.csv").write_text("".join(f"{number}.png,{number % 2}\n" for number in range(40)))
    return folder / "a.csv"


@pytest.mark.parametrize("write", [of_archive, of_values, of_one_value, of_one_name, of_photos])
def test_all_images_of_a_run_take_time_for_their_bytes(write, tmp_path, monkeypatch):
    """Beyond what kilobytes may cost, each image of a bomb is a reject; others are decoded."""
    monkeypatch.setattr(
        image_settings, "DECODING_SECONDS", Limit(1, "s", ROW)
    )  # of 0.08 s for each
    codes = [it.code for it in recordgen.check(str(write(tmp_path)), progress=None).rejects]
    is_bomb = write in (of_archive, of_values)
    assert set(codes) == ({"too_slow"} if is_bomb else set())
    assert not is_bomb or 20 < len(codes) < 30
