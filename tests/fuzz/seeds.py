"""Inputs from which the fuzzer starts, made by code: one image of each kind, small and whole."""

from benchmarks.mutants import encoded, images, picture
from tests.payloads import hostile

_PICTURE, _OTHER = picture(), picture(1)


def decoded_images():
    """Return images of every format and coding, and some that are refused, by name."""
    exif = hostile.exif_of_tags(3, 10)
    runs = b"\3\7\0\0\0\4\1\2\3\4\0\0\0\2\1\1\0\1"
    return {
        **images(),
        **{name: make() for name, (make, _) in hostile.JPEGS.items() if not name[-1].isdigit()},
        "lossless": hostile.lossless_jpeg(16),
        "jpeg with tags": hostile.jpeg_of_exif(exif),
        "jpeg with a profile": hostile.jpeg_of_profiles(1),
        "jpeg with a further picture": encoded(
            _PICTURE, "MPO", save_all=True, append_images=[_PICTURE]
        ),
        "png with chunks": hostile.png_of(hostile.png_chunk(b"eXIf", exif))
        + hostile.png_of_texts(b"iCCP", 1, 10),
        "animated png": encoded(_PICTURE, "PNG", save_all=True, append_images=[_OTHER]),
        "interlaced gif": encoded(_PICTURE, "GIF", interlace=1),
        "gif with a comment": hostile.gif_of_comment(20),
        "bmp of runs": hostile.bmp_of_runs(8, 4, runs),
        "bmp of 4 bit runs": hostile.bmp_of_runs(8, 4, runs, 2),
        "1 bit bmp": encoded(_PICTURE.convert("1"), "BMP"),
        "webp with chunks": hostile.webp_of_exif(exif),
        "animated webp": encoded(_PICTURE, "WEBP", save_all=True, append_images=[_OTHER]),
        "tiff of tiles": hostile.tiff_of_tiles(32, 16, 16, 4),
        "turned tiff": encoded(_PICTURE, "TIFF", tiffinfo={0x0112: 6}),
        "tiff with separate planes": encoded(_PICTURE, "TIFF", tiffinfo={284: 2}),
        "big tiff": encoded(_PICTURE, "TIFF", big_tiff=True),
        "ico of runs": hostile.ico_of_runs(8),
    }


#: Makers of inputs by target.
SEEDS = {"decode": decoded_images}
