"""Colours that viewers convert and TensorFlow does not: they are named, and change no bytes."""

import io
import struct
import zlib

import pytest
from PIL import Image, ImageCms

from benchmarks.bombs import png_chunk as chunk
from recordgen.payloads.check import check_image
from recordgen.payloads.png import profile_colours
from tests.conftest import encoded, noise
from tests.settings import payload_settings

OPTIONS = payload_settings()

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

# red, green and blue as XYZ relative to D50
PRIMARIES = {
    "sRGB": ((0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141)),
    "Adobe RGB": ((0.6097, 0.3111, 0.0195), (0.2053, 0.6257, 0.0609), (0.1492, 0.0632, 0.7446)),
    "Display P3": ((0.5151, 0.2412, -0.0011), (0.292, 0.6923, 0.0419), (0.1571, 0.0666, 0.7841)),
    "ProPhoto RGB": ((0.7977, 0.288, 0.0), (0.1352, 0.7119, 0.0), (0.0313, 0.0001, 0.8249)),
    "Rec. 2020": ((0.6735, 0.279, -0.0019), (0.1657, 0.6754, 0.03), (0.1251, 0.0456, 0.7968)),
}


def fixed(*values):
    """Return numbers as s15Fixed16 (ICC.1:2022, 4.6)."""
    return struct.pack(f">{len(values)}i", *(round(value * 65536) for value in values))


def profile(space, tags):
    """Return an ICC profile."""
    at, entries, bodies = 128 + 4 + 12 * len(tags), b"", b""
    for name, body in tags.items():
        entries += struct.pack(">4sII", name, at + len(bodies), len(body))
        bodies += body
    size = at + len(bodies)
    head = struct.pack(">I4sI4s4s4s12s", size, b"none", 0, b"mntr", space, b"XYZ ", bytes(12))
    return (head + b"acsp").ljust(128, b"\0") + struct.pack(">I", len(tags)) + entries + bodies


def rgb(primaries):
    """Return a profile of three primaries."""
    names = (b"rXYZ", b"gXYZ", b"bXYZ")
    bodies = (b"XYZ \0\0\0\0" + fixed(*values) for values in primaries)
    return profile(b"RGB ", dict(zip(names, bodies, strict=True)))


LUT = {b"A2B0": b"mft2" + bytes(40)}

# profile, its name if viewers convert it
PROFILES = [
    (SRGB, None),
    *[(rgb(found), None if name == "sRGB" else name) for name, found in PRIMARIES.items()],
    (rgb([(0.55, 0.25, 0.01), *PRIMARIES["sRGB"][1:]]), "RGB profile"),
    (profile(b"RGB ", LUT), "RGB profile"),
    (profile(b"RGB ", {**LUT, b"desc": b"desc\0\0\0\0\0\0\0\4sRGB v4"}), None),
    (profile(b"RGB ", {**LUT, b"desc": b"mluc" + "sRGB".encode("utf-16-be")}), None),
    (profile(b"CMYK", LUT), "CMYK profile"),
    (profile(b"Lab ", LUT), "profile of another colour model"),
    (b"", None),
    (b"no profile" * 20, None),
    (profile(b"GRAY", {}), None),
]


@pytest.mark.parametrize(("data", "name"), PROFILES, ids=range(len(PROFILES)))
def test_known_profiles_have_names_and_srgb_has_none(data, name):
    """Only a profile that changes colours has a name."""
    assert profile_colours(data) == name
    assert profile_colours(data + bytes(30_000)) == name  # too large to be remembered


P3 = rgb(PRIMARIES["Display P3"])


def test_truncated_profiles_are_ignored():
    """No part of a profile is taken for the whole."""
    assert {profile_colours(P3[:size]) for size in range(len(P3))} == {None}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_profiles_of_every_format_are_found_and_change_nothing(kind):
    """The stored bytes or pixels are those of the same picture without a profile."""
    picture = noise(20, 12)
    for data, name in ((P3, "Display P3"), (SRGB, None)):
        stored = check_image(encoded(picture, kind, icc_profile=data), OPTIONS)
        assert stored.colours == name
        plain = check_image(encoded(picture, kind), OPTIONS)
        assert plain.colours is None
        if kind in ("JPEG", "PNG"):
            assert stored.data == encoded(picture, kind, icc_profile=data)
        else:
            assert stored.data == plain.data
        small = check_image(
            encoded(picture, kind, icc_profile=data), payload_settings(image_size="8max")
        )
        assert small.colours == name


def test_parts_of_a_profile_are_joined_by_their_numbers():
    """The order of segments does not matter."""
    large = P3 + bytes(150_000)
    data = encoded(noise(20, 12), "JPEG", icc_profile=large)
    assert data.count(b"ICC_PROFILE\0") == 3
    assert check_image(data, OPTIONS).colours == "Display P3"
    start = data.index(b"\xff\xe2")
    size = 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    first = data[start : start + size]
    swapped = data[:start] + data[start + size : start + 2 * size] + first
    assert check_image(swapped + data[start + 2 * size :], OPTIONS).colours == "Display P3"


@pytest.mark.parametrize("number", [b"\0\1", b"\2\1", b"\1\2", b"\1\0"])
def test_parts_with_wrong_numbers(number):
    """The decoder warns of them, as of damage; TensorFlow reads the picture, and it is accepted."""
    data = encoded(noise(20, 12), "JPEG", icc_profile=P3)
    damaged = data.replace(b"ICC_PROFILE\0\1\1", b"ICC_PROFILE\0" + number)
    assert damaged != data
    assert check_image(damaged, OPTIONS).data == damaged
    assert check_image(damaged, payload_settings(image_size="8max")).width == 8


def gamma(value):
    return chunk(b"gAMA", struct.pack(">I", value))


ICCP = chunk(b"iCCP", b"name\0\0" + zlib.compress(P3))

# chunks in front of the pixels, what viewers apply
PNGS = [
    (b"", None),
    (gamma(45455), None),
    (gamma(47000), None),
    (gamma(100_000), "gamma other than 2.2"),
    (gamma(55556), "gamma other than 2.2"),
    (gamma(0), None),
    (chunk(b"sRGB", b"\0") + gamma(100_000), None),
    (ICCP, "Display P3"),
    (ICCP + gamma(100_000), "Display P3"),
    (chunk(b"iCCP", b"name\0\0no zlib") + gamma(100_000), None),
    (chunk(b"cICP", b"\x01\x0d\0\1"), None),
    (chunk(b"cICP", b"\x0c\x0d\0\1") + chunk(b"sRGB", b"\0"), "cICP"),
    (chunk(b"gAMA", b"\1"), "gamma other than 2.2"),
]


@pytest.mark.parametrize(("chunks", "name"), PNGS, ids=range(len(PNGS)))
def test_colours_of_pngs(chunks, name):
    """A profile wins over sRGB and gamma, and the bytes stay."""
    plain = encoded(noise(20, 12), "PNG")
    data = plain[:33] + chunks + plain[33:]
    stored = check_image(data, OPTIONS)
    assert (stored.colours, stored.data) == (name, data)
    if chunks.startswith(ICCP):
        assert Image.open(io.BytesIO(data)).info["icc_profile"] == P3


def test_chunks_behind_the_pixels_are_ignored():
    """Viewers read gamma only in front of the pixels."""
    plain = encoded(noise(20, 12), "PNG")
    assert check_image(plain[:-12] + gamma(100_000) + plain[-12:], OPTIONS).colours is None
