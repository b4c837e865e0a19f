"""How much a JPEG loses when its Exif orientation is undone by re-encoding.

    python -m benchmarks.turns

The pictures are scikit-learn's two photographs, cropped to whole blocks (640×416) or not (637×421),
and saved in several qualities. Each is then converted. The loss is the PSNR between the file in a
viewer and the picture that TensorFlow's users get; next to it, both are compared with the picture
before its first JPEG encoding.
"""

from __future__ import annotations

import io
import itertools
import statistics

import numpy as np
from PIL import ExifTags, Image, ImageOps
from sklearn.datasets import load_sample_images

from recordgen.conversion.settings import payloads_of
from recordgen.options import ConvertOptions
from recordgen.payloads.check import check_image

SIZES = ((640, 416), (637, 421))
QUALITIES = (75, 85, 92, 97)
SAMPLINGS = {"4:4:4": 0, "4:2:0": 2}


def psnr(one: Image.Image, other: Image.Image) -> float:
    """Return the peak signal-to-noise ratio of two images of equal size, in dB."""
    difference = np.asarray(one, np.float64) - np.asarray(other, np.float64)
    return float(10 * np.log10(255**2 / np.mean(difference**2)))


def main() -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    pictures = [Image.fromarray(pixels) for pixels in load_sample_images().images]
    print("size      quality  sampling  turned and file   file and picture   turned and picture")
    for size, quality, sampling in itertools.product(SIZES, QUALITIES, SAMPLINGS):
        found = []
        for picture in pictures:
            part = picture.crop((0, 0, *size))
            out = io.BytesIO()
            part.save(out, "JPEG", quality=quality, subsampling=SAMPLINGS[sampling], exif=exif)
            stored = check_image(out.getvalue(), payloads_of(ConvertOptions())).data
            shown = ImageOps.exif_transpose(Image.open(out))
            turned = Image.open(io.BytesIO(stored))
            upright = part.transpose(Image.Transpose.ROTATE_270)
            found.append((psnr(turned, shown), psnr(shown, upright), psnr(turned, upright)))
        means = [statistics.mean(column) for column in zip(*found, strict=True)]
        print(
            f"{size[0]}×{size[1]}  {quality:7}  {sampling:8}  {means[0]:12.1f} dB "
            f"{means[1]:15.1f} dB {means[2]:17.1f} dB"
        )


if __name__ == "__main__":
    main()
