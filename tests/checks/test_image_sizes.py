"""Classes whose images have a size of their own."""

import numpy as np
import pytest

from tests.checks.facts import findings
from tests.conftest import encoded, noise

SQUARE, WIDE = (40, 40), (60, 40)


def codes(folder, images, **options):
    """Write images of labels and sizes; return the lines of the findings of CLASS_SIZE."""
    lines = []
    for number, (label, size) in enumerate(images):
        (folder / f"{number}.png").write_bytes(encoded(noise(*size, number), "PNG"))
        lines.append(f"TRAIN,{number}.png,{label}\n")
    (folder / "a.csv").write_text("".join(lines))
    found = findings(folder / "a.csv", lint=("CLASS_SIZE", *options.pop("lint", ())), **options)
    return [item.line for item in found]


@pytest.mark.parametrize(
    ("cats", "dogs", "lines"),
    [
        # the sizes of images of two classes, lines with a finding
        ([WIDE] * 10, [SQUARE] * 10, [1, 11]),
        ([WIDE] * 10, [SQUARE] * 6 + [(41, 40)] * 4, [1]),
        ([WIDE] * 9, [SQUARE] * 10, []),  # too few
        ([WIDE] * 10, [WIDE] + [SQUARE] * 9, [12]),  # another image has the size of the cats
        ([WIDE] * 18 + [SQUARE] * 2, [SQUARE] * 100, [1]),
        ([WIDE] * 17 + [SQUARE] * 3, [(41, 40 + n) for n in range(20)], []),
        ([SQUARE] * 10, [SQUARE] * 10, []),
    ],
)
def test_sizes_of_one_class(cats, dogs, lines, tmp_path):
    """A class is found if nearly all of its images have a size that hardly any other has."""
    images = [("cat", size) for size in cats] + [("dog", size) for size in dogs]
    assert codes(tmp_path, images) == list(lines)


def test_the_threshold_is_a_share_of_the_class_in_percent(tmp_path):
    images = [("cat", WIDE)] * 17 + [("cat", SQUARE)] * 3 + [("dog", SQUARE)] * 20
    assert codes(tmp_path, images, lint=("CLASS_SIZE=85",)) == [1]


def test_one_shape_is_the_remedy(tmp_path):
    """Images that are stored in one shape have no size of their own."""
    images = [("cat", WIDE)] * 10 + [("dog", SQUARE)] * 10
    assert codes(tmp_path, images, image_size="32x32") == []


def test_no_findings_among_sizes_of_cameras(tmp_path):
    """Sizes that are as frequent in each class as in all images are no finding."""
    rng = np.random.default_rng(0)
    sizes = [(20 + n, 20) for n in range(6)]
    images = [(f"{n % 4}", sizes[min(int(rng.exponential(1)), 5)]) for n in range(200)]
    assert codes(tmp_path, images) == []
