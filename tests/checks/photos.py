"""A picture like a photo, and a JPEG as the check decodes it."""

from PIL import Image

from benchmarks.lint import small_jpeg as small_jpeg
from tests.conftest import noise


def scene(width=500, height=375, seed=4):
    """Return soft blobs with one hard edge."""
    image = noise(10, 8, seed).resize((width, height), Image.Resampling.BICUBIC)
    image.paste("black", (width // 2, height // 4, width // 2 + width // 8, height // 2))
    return image
