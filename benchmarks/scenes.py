"""Pictures of several kinds, all different, for trying checks.

photos   non-overlapping parts of scikit-learn's two photographs: some sharp, some out of
         focus
scenes   made: shapes of all sizes that cover each other ("dead leaves": their sizes and edges
         resemble photos), with light, texture and noise; half of them under a sky
skies    made: a smooth sky behind a few small objects
pages    made: lines of letters on white
digits   scikit-learn's handwritten digits of 8×8 pixels, enlarged to 64×64
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits, load_sample_images

SIZE = (500, 375)  # width, height
_PARTS = 3  # of a photograph, in each direction

Random = np.random.Generator


@cache
def _photographs() -> Sequence[Image.Image]:
    return [Image.fromarray(pixels) for pixels in load_sample_images().images]


def photos(count: int) -> Sequence[Image.Image]:
    parts = (
        photo.crop((column * width, row * height, (column + 1) * width, (row + 1) * height))
        for photo in _photographs()
        for width, height in [(photo.width // _PARTS, photo.height // _PARTS)]
        for row in range(_PARTS)
        for column in range(_PARTS)
    )
    return list(islice(parts, count))


def digits(count: int) -> Sequence[Image.Image]:
    images = load_digits().images[:count]
    small = (Image.fromarray(np.minimum(image * 16, 255).astype(np.uint8)) for image in images)
    return [image.resize((64, 64), Image.Resampling.NEAREST) for image in small]


def _scene(random: Random) -> Image.Image:
    colours = np.asarray(_photographs()[int(random.integers(2))]).reshape(-1, 3)
    image = Image.new("RGB", SIZE)
    draw = ImageDraw.Draw(image)
    # Sizes with a density of 1 / radius**3, like objects in photos.
    radii = (4**-2 - random.random(600) * (4**-2 - 150**-2)) ** -0.5
    nearness = radii * np.exp(random.normal(0, 0.7, len(radii)))
    for radius in radii[np.argsort(-nearness)]:
        _draw_leaf(draw, float(radius), colours, random)
    pixels = np.asarray(image).astype(np.float64)
    if random.random() < 0.5:
        pixels = _with_sky(pixels, random)
    return _lit(pixels, random)


def _draw_leaf(
    draw: ImageDraw.ImageDraw, radius: float, colours: npt.NDArray[np.uint8], random: Random
) -> None:
    x, y = random.random(2) * SIZE
    tone = colours[random.integers(len(colours))] * 0.8 + random.normal(20, 18, 3)
    red, green, blue = (int(level) for level in np.clip(tone, 0, 255))
    tall = random.uniform(0.4, 1.6)
    if random.random() < 0.6:
        outline = (x - radius, y - radius * tall, x + radius, y + radius * tall)
        draw.ellipse(outline, fill=(red, green, blue))
        return
    angles = random.random() * 7 + np.linspace(0, 2 * np.pi, int(random.integers(4, 7)))[:-1]
    corners = [(x + radius * np.cos(a), y + radius * tall * np.sin(a)) for a in angles]
    draw.polygon(corners, fill=(red, green, blue))


def _with_sky(pixels: npt.NDArray[np.float64], random: Random) -> npt.NDArray[np.float64]:
    horizon = int(SIZE[1] * random.uniform(0.3, 0.6))
    sky = np.linspace(200, 160, horizon)[:, None, None] * [0.9, 0.97, 1.05]
    pixels[:horizon] = pixels[:horizon] * 0.15 + sky
    return pixels


def _lit(pixels: npt.NDArray[np.float64], random: Random) -> Image.Image:
    height, width, _ = pixels.shape
    left, right, top, bottom = random.uniform(0.65, 1, 4).tolist()
    across = np.linspace(left, right, width)[None, :, None]
    down = np.linspace(top, bottom, height)[:, None, None]
    coarse = random.normal(0, 8, (height // 2, width // 2)).astype(np.float32)
    texture = np.asarray(Image.fromarray(coarse).resize((width, height)))
    noise = random.normal(0, 4, (height, width)) + texture
    lit = pixels * across * down * 1.1 + noise[:, :, None]
    return Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))


def _sky(random: Random) -> Image.Image:
    down = np.linspace(0, 1, SIZE[1])[:, None, None]
    top = np.array([225, 235, 250]) * random.uniform(0.7, 1)
    pixels = (1 - down) * top + down * random.uniform(60, 200, 3)
    image = Image.fromarray(np.repeat(pixels, SIZE[0], axis=1).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(int(random.integers(1, 6))):
        (x, y), radius = random.random(2) * SIZE, random.uniform(6, 40)
        red, green, blue = (int(level) for level in random.integers(0, 120, 3))
        outline = (x - radius, y - radius, x + radius, y + 1.5 * radius)
        draw.ellipse(outline, fill=(red, green, blue))
    return image


def _page(random: Random) -> Image.Image:
    image = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(image)
    for y in range(20, SIZE[1] - 30, 14):
        letters = random.integers(ord("a"), ord("z") + 5, int(random.integers(20, 70)))
        line = "".join(chr(letter) if letter <= ord("z") else " " for letter in letters)
        draw.text((30, y), line, fill="black")
    return image


def _made(make: Callable[[Random], Image.Image]) -> Callable[[int], Sequence[Image.Image]]:
    return lambda count: [make(np.random.default_rng(number)) for number in range(count)]


#: By name: returns this many pictures, or all there are.
KINDS: Mapping[str, Callable[[int], Sequence[Image.Image]]] = {
    "photos": photos,
    "scenes": _made(_scene),
    "skies": _made(_sky),
    "pages": _made(_page),
    "digits": digits,
}
