"""Import files of pictures that the small models learn in a few epochs."""

import numpy as np
from PIL import Image

#: The labels of pictures in the order of their numbers: the channels from the last to the first.
COLOURS = ("blue", "green", "red")
#: The names of the classes of masks.
CLASSES = ("ground", "red", "blue")
#: Height and width of pictures of boxes, and of masks.
BOXES_SIDE, MASKS_SIDE = 32, 16


def noise(random, height, width, spread=60):
    """Return dark noise, uint8 [height, width, 3]."""
    return random.integers(0, spread, (height, width, 3), np.uint8)


def coloured(number, *, spread=100):
    """Return a noisy image, and the labels of the channels that were made brighter by 60.

    Channels also differ at random, by up to ``spread``: with its default, a perfect model orders
    about 0.92 of all pairs correctly.
    """
    random = np.random.default_rng(number)
    pixels = noise(random, 9, 8 + number % 5, 30)
    pixels += random.integers(0, spread, 3, np.uint8, endpoint=True)
    shown = [label for bit, label in enumerate(COLOURS) if number >> bit & 1]
    for label in shown:
        pixels[..., 2 - COLOURS.index(label)] += 60
    return Image.fromarray(pixels), shown


def boxed(number):
    """Return a noisy image with up to two coloured boxes, and the boxes (label, x0, y0, x1, y1)."""
    random = np.random.default_rng(number)
    pixels = noise(random, BOXES_SIDE, BOXES_SIDE)
    boxes = []
    for half in range(number % 3):
        label = int(random.integers(3))
        width, height = random.integers(6, 12, 2)
        left, top = random.integers(0, BOXES_SIDE - 12), 16 * half + random.integers(0, 5)
        pixels[top : top + height, left : left + width, 2 - label] += 180
        boxes.append((COLOURS[label], left, top, left + width, top + height))
    return Image.fromarray(pixels), boxes


def masked(number):
    """Return noise with a red and a blue rectangle, and its mask; one row has no class."""
    random = np.random.default_rng(number)
    pixels = noise(random, MASKS_SIDE, MASKS_SIDE)
    mask = np.zeros((MASKS_SIDE, MASKS_SIDE), np.uint8)
    for label in (1, 2):
        top, left = random.integers(0, MASKS_SIDE // 2, 2)
        mask[top : top + 8, left : left + 8] = label
    for label, channel in ((1, 0), (2, 2)):
        pixels[mask == label, channel] += 180
    mask[0] = 255
    return Image.fromarray(pixels), mask


def pictures(folder, count, make):
    """Write images; yield each one's name, the start of its row, and what ``make`` says of it.

    Each fifth is for evaluation.
    """
    for number in range(count):
        image, shown = make(number)
        image.save(folder / f"{number}.png")
        yield str(number), f"{'TRAIN' if number % 5 else 'VALIDATION'},{number}.png", shown


def write_coloured(folder, count):
    """Write images and their CSV; every eighth has no colour and no label."""
    found = pictures(folder, count, coloured)
    return written(folder, [",".join([start, *shown]) for _, start, shown in found])


def write_boxed(folder, count):
    """Write images and their CSV; a third has no boxes."""
    rows = []
    for _, start, boxes in pictures(folder, count, boxed):
        for label, *corners in boxes:
            left, top, right, bottom = (corner / BOXES_SIDE for corner in corners)
            rows.append(f"{start},{label},{left},{top},,,{right},{bottom},,")
        if not boxes:
            rows.append(f"{start},,,,,,,,,")
    return written(folder, rows)


def write_masked(folder, count):
    """Write images, masks, their CSV, and ``names.txt``."""
    rows = []
    for name, start, mask in pictures(folder, count, masked):
        Image.fromarray(mask).save(folder / f"{name}_mask.png")
        rows.append(f"{start},{name}_mask.png")
    (folder / "names.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    return written(folder, rows)


def written(folder, rows):
    """Write ``a.csv``; return its path."""
    (folder / "a.csv").write_text("".join(f"{row}\n" for row in rows))
    return str(folder / "a.csv")
