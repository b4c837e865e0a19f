"""Average precision: by hand, and against counting anew for every recall."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordgen.training.average_precision import BoxMatches, intersections_over_unions

HERE, THERE = (0.0, 0.0, 0.4, 0.4), (0.5, 0.5, 0.9, 0.9)
NEARLY_HERE = (0.0, 0.0, 0.4, 0.3)  # 0.75 of it
HARDLY_HERE = (0.0, 0.0, 0.4, 0.1)  # 0.25


def true(*boxes):
    return np.array([(*box, label) for box, label in boxes], np.float32).reshape(-1, 5)


def found(*boxes):
    return np.array([(*box, label, score) for box, label, score in boxes], np.float32).reshape(
        -1, 6
    )


def precisions(*images):
    matches = BoxMatches()
    for image in images:
        matches.add(*image)
    return matches.average_precisions()


@pytest.mark.parametrize(
    ("is_there", "is_found", "expected"),
    [
        # (box, class); (box, class, score); AP by class
        ([(HERE, 0)], [(NEARLY_HERE, 0, 0.3)], {0: 1}),
        ([(HERE, 0)], [(HARDLY_HERE, 0, 0.9)], {0: 0}),
        ([(HERE, 0)], [(HERE, 1, 0.9)], {0: 0}),
        ([(HERE, 0)], [], {0: 0}),
        ([], [(HERE, 0, 0.9)], {}),
        # What is found twice is found once; a false box counts where it scores higher.
        ([(HERE, 0)], [(HERE, 0, 0.9), (NEARLY_HERE, 0, 0.8)], {0: 1}),
        ([(HERE, 0)], [(HERE, 0, 0.8), (THERE, 0, 0.9)], {0: 0.5}),
        # The better score comes first, and takes the box that it overlaps most.
        ([(HERE, 0), (NEARLY_HERE, 0)], [(HERE, 0, 0.9), (HARDLY_HERE, 0, 0.8)], {0: 51 / 101}),
        ([(HERE, 0), (NEARLY_HERE, 0)], [(NEARLY_HERE, 0, 0.9), (HERE, 0, 0.8)], {0: 1}),
        # Half of the boxes: recalls 0, 0.01, …, 0.5 are reached, of 101.
        ([(HERE, 0), (THERE, 0)], [(HERE, 0, 0.9)], {0: 51 / 101}),
        ([(HERE, 0), (THERE, 1)], [(HERE, 0, 0.9), (HERE, 1, 0.1)], {0: 1, 1: 0}),
    ],
)
def test_one_image(is_there, is_found, expected):
    """COCO's rules at an overlap of half."""
    assert precisions((true(*is_there), found(*is_found))) == pytest.approx(expected)


def test_images_are_ranked_together():
    """Scores of all images are compared: here right, false, right, so 1, then 2 of 3."""
    images = (
        (true((HERE, 0)), found((HERE, 0, 0.9), (THERE, 0, 0.5))),
        (true((HERE, 0)), found((HERE, 0, 0.4))),
    )
    assert precisions(*images) == pytest.approx({0: (51 * 1 + 50 * 2 / 3) / 101})


def test_padding_is_no_box():
    """Rows of -1 are left out."""
    padded = np.vstack([true((HERE, 0)), np.full((2, 5), -1, np.float32)])
    answers = np.vstack([np.full((2, 6), -1, np.float32), found((HERE, 0, 0.1))])
    assert precisions((padded, answers)) == {0: 1}


def test_overlaps_of_boxes_without_area():
    """They overlap nothing, themselves neither."""
    boxes = np.array([(0.2, 0.2, 0.2, 0.5), HERE], np.float32)
    np.testing.assert_allclose(intersections_over_unions(boxes, boxes), [[0, 0], [0, 1]])


CORNERS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
LABELS = st.integers(0, 2)
# Distinct scores: of equal ones it is not said which comes first.
IMAGES = st.lists(
    st.tuples(
        st.lists(st.tuples(CORNERS, LABELS), max_size=5),
        st.lists(st.tuples(CORNERS, LABELS), max_size=6),
    ),
    max_size=6,
)


def arrays(images, random):
    """Return (true, found) of each image; corners are x, y, width, height."""
    scores = iter(random.permutation(np.arange(1, 100)) / 100)
    for there, seen in images:
        yield (
            true(*(((x, y, x + w, y + h), label) for (x, y, w, h), label in there)),
            found(*(((x, y, x + w, y + h), n, next(scores)) for (x, y, w, h), n in seen)),
        )


def slow(images, label):
    """Return the AP of a class, counting anew for every recall."""
    ranked, count = [], 0
    for there, seen in images:
        free = [row for row in there.tolist() if row[4] == label]
        count += len(free)
        for row in sorted(seen.tolist(), key=lambda row: -row[5]):
            if row[4] != label:
                continue
            best = max(free, key=lambda other: overlap(row, other), default=None)
            right = best is not None and overlap(row, best) >= 0.5
            if right:
                free.remove(best)
            ranked.append((-row[5], right))
    ranked.sort()
    total = 0.0
    for percent in range(101):
        best = 0.0
        for end in range(1, len(ranked) + 1):
            rights = sum(right for _, right in ranked[:end])
            if 100 * rights >= percent * count:
                best = max(best, rights / end)
        total += best / 101
    return total


def overlap(first, second):
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return shared / (sum(areas) - shared)


@settings(deadline=None, max_examples=50)
@given(IMAGES, st.integers(0, 9))
def test_against_a_slow_computation(images, seed):
    """For any boxes, and in any order of the images, also counted in two parts."""
    images = list(arrays(images, np.random.default_rng(seed)))
    labels = {int(row[4]) for there, _ in images for row in there}
    expected = {label: slow(images, label) for label in labels}
    assert precisions(*images) == pytest.approx(expected)
    first, second = BoxMatches(), BoxMatches()
    for number, image in enumerate(images):
        (first if number % 2 else second).add(*image)
    first.merge(second)
    assert first.average_precisions() == pytest.approx(expected)
