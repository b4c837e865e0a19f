"""Average precision, computed by hand, and compared with COCO's own evaluation."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from recordgen.training.measures import CROWD, BoxAccumulator, overlaps_of

HERE, THERE = (0.0, 0.0, 0.4, 0.4), (0.5, 0.5, 0.9, 0.9)
NEARLY_HERE = (0.0, 0.0, 0.4, 0.3)  # 0.75 of it
HARDLY_HERE = (0.0, 0.0, 0.4, 0.1)  # 0.25


def true(*boxes):
    return np.array([(*box, label) for box, label in boxes], np.float32).reshape(-1, 5)


def found(*boxes):
    return np.array([(*box, label, score) for box, label, score in boxes], np.float32).reshape(
        -1, 6
    )


def counted(*images):
    counts = BoxAccumulator(2)
    for true_boxes, found_boxes in images:
        counts.add(true_boxes[None], found_boxes[None])
    return counts


def precisions(*images):
    return counted(*images).by_label()


@pytest.mark.parametrize(
    ("is_there", "is_found", "expected"),
    [
        # (box, class); (box, class, score); AP by class
        ([(HERE, 0)], [(NEARLY_HERE, 0, 0.3)], {0: 1}),
        ([(HERE, 0)], [(HARDLY_HERE, 0, 0.9)], {0: 0}),
        ([(HERE, 0)], [(HERE, 1, 0.9)], {0: 0}),
        ([(HERE, 0)], [], {0: 0}),
        ([], [(HERE, 0, 0.9)], {}),
        # A second match is false; a false box counts if its score is higher.
        ([(HERE, 0)], [(HERE, 0, 0.9), (NEARLY_HERE, 0, 0.8)], {0: 1}),
        ([(HERE, 0)], [(HERE, 0, 0.8), (THERE, 0, 0.9)], {0: 0.5}),
        # The box with the better score comes first, and matches the box that it overlaps most.
        ([(HERE, 0), (NEARLY_HERE, 0)], [(HERE, 0, 0.9), (HARDLY_HERE, 0, 0.8)], {0: 51 / 101}),
        ([(HERE, 0), (NEARLY_HERE, 0)], [(NEARLY_HERE, 0, 0.9), (HERE, 0, 0.8)], {0: 1}),
        # Half of the boxes: recalls 0, 0.01, …, 0.5 are reached, of 101.
        ([(HERE, 0), (THERE, 0)], [(HERE, 0, 0.9)], {0: 51 / 101}),
        ([(HERE, 0), (THERE, 1)], [(HERE, 0, 0.9), (HERE, 1, 0.1)], {0: 1, 1: 0}),
    ],
)
def test_boxes_of_one_image_are_matched_by_the_rules_of_coco(is_there, is_found, expected):
    assert precisions((true(*is_there), found(*is_found))) == pytest.approx(expected)


@pytest.mark.parametrize(("order", "expected"), [((0, 1), 51 / 101), ((1, 0), 1)])
def test_of_equally_overlapped_boxes_the_last_is_matched(order, expected):
    # The first found box overlaps both true boxes by two thirds, the second only the small one.
    large, small = ((2 / 8, 1 / 8, 5 / 8, 4 / 8), (2 / 8, 2 / 8, 4 / 8, 4 / 8))
    there = [((large, small)[number], 0) for number in order]
    seen = [((2 / 8, 2 / 8, 5 / 8, 4 / 8), 0, 0.9), ((2 / 8, 2 / 8, 3 / 8, 4 / 8), 0, 0.8)]
    image = true(*there), found(*seen)
    assert precisions(image) == pytest.approx({0: expected})
    assert of_coco([image]) == pytest.approx({0: expected})


def test_boxes_of_all_images_are_ranked_together():
    images = (
        (true((HERE, 0)), found((HERE, 0, 0.9), (THERE, 0, 0.5))),
        (true((HERE, 0)), found((HERE, 0, 0.4))),
    )
    assert precisions(*images) == pytest.approx({0: (51 * 1 + 50 * 2 / 3) / 101})


def test_padding_is_no_box():
    padded = np.vstack([true((HERE, 0)), np.full((2, 5), -1, np.float32)])
    answers = np.vstack([np.full((2, 6), -1, np.float32), found((HERE, 0, 0.1))])
    assert precisions((padded, answers)) == {0: 1}


def test_boxes_without_area_overlap_nothing():
    boxes = np.array([(0.2, 0.2, 0.2, 0.5), HERE], np.float32)
    np.testing.assert_allclose(overlaps_of(boxes, boxes), [[0, 0], [0, 1]])


CORNERS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
LABELS = st.integers(0, 2)
# Distinct scores, because the order of equal scores is not specified.
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


def of_coco(images):
    """Return the AP by class of COCO's own evaluation, at an overlap of half."""
    truth, answers = COCO(), []
    annotations = [
        {
            "id": number,
            "image_id": image,
            "category_id": int(label),
            "bbox": [x1, y1, x2 - x1, y2 - y1],
            "area": (x2 - x1) * (y2 - y1),
            "iscrowd": int(is_crowd),
        }
        for number, (image, (x1, y1, x2, y2, label), is_crowd) in enumerate(
            (
                (image, (*row[:4], CROWD - row[4] if row[4] <= CROWD else row[4]), row[4] <= CROWD)
                for image, (there, _) in enumerate(images)
                for row in there.tolist()
            ),
            start=1,  # 0 means no box
        )
    ]
    labels = sorted({item["category_id"] for item in annotations})
    truth.dataset = {
        "images": [{"id": image} for image in range(len(images))],
        "annotations": annotations,
        "categories": [{"id": label} for label in labels],
    }
    for image, (_, seen) in enumerate(images):
        answers += [
            [image, x1, y1, x2 - x1, y2 - y1, score, label]
            for x1, y1, x2, y2, label, score in seen.tolist()
        ]
    with redirect_stdout(io.StringIO()):  # it prints its progress
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(np.reshape(answers, (-1, 7))), "bbox")
        evaluation.params.iouThrs = np.array([0.5])
        evaluation.evaluate()
        evaluation.accumulate()
    # The axes of precision: overlap, recall, class, area (first: all), boxes of an image.
    found = evaluation.eval["precision"][0, :, :, 0, -1].mean(axis=0)
    return dict(zip(labels, found.tolist(), strict=True))


def has_boxes(images):
    """Return whether there are true and found boxes, without which pycocotools fails."""
    return all(any(boxes) for boxes in zip(*images, strict=True)) if images else False


@settings(max_examples=25)
@given(IMAGES.filter(has_boxes), st.integers(0, 9))
def test_any_boxes_and_merged_counts_agree_with_pycocotools(images, seed):
    images = list(arrays(images, np.random.default_rng(seed)))
    expected = of_coco(images)
    assert precisions(*images) == pytest.approx(expected)
    first, second = counted(*images[1::2]), counted(*images[::2])
    first.merge(second)
    assert first.by_label() == pytest.approx(expected)


def with_crowds(images, random):
    """Return images of which some true boxes are around crowds."""
    for there, seen in images:
        is_crowd = random.random(len(there)) < 0.4
        labels = np.where(is_crowd, CROWD - there[:, 4], there[:, 4])
        yield np.c_[there[:, :4], labels].astype(np.float32), seen


@settings(max_examples=25)
@given(IMAGES.filter(has_boxes), st.integers(0, 99))
def test_crowds_are_ignored_as_pycocotools_ignores_them(images, seed):
    """A box in a crowd of its class is neither right nor false, unless it matches another box."""
    random = np.random.default_rng(seed)
    images = list(with_crowds(arrays(images, random), random))
    # COCO has -1 for a class whose boxes are all around crowds.
    expected = {label: value for label, value in of_coco(images).items() if value >= 0}
    assert precisions(*images) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ((0.4, 0.4, 0.5, 0.5), 1),  # in the crowd
        ((0.4, 0.4, 0.52, 0.5), 1),  # most of it is
        ((0.45, 0.4, 0.6, 0.5), 0.5),  # a third of it is
    ],
)
def test_a_box_in_a_crowd_does_not_count(seen, expected):
    crowd = np.array([(0.2, 0.2, 0.5, 0.5, CROWD)], np.float32)
    image = np.r_[true((THERE, 0)), crowd], found((THERE, 0, 0.5), (seen, 0, 0.9))
    assert precisions(image) == pytest.approx({0: expected})
    assert of_coco([image]) == pytest.approx({0: expected})


def test_a_box_that_is_found_again_is_false():
    image = true((HERE, 0), (THERE, 0)), found((HERE, 0, 0.9), (HERE, 0, 0.8), (THERE, 0, 0.7))
    assert of_coco([image]) == pytest.approx({0: (51 + 50 * 2 / 3) / 101})
    assert precisions(image) == pytest.approx({0: (51 + 50 * 2 / 3) / 101})
    twice = true((HERE, 0), (THERE, 0)), found((HERE, 0, 0.9), (HERE, 0, 0.8))
    assert precisions(twice) == pytest.approx({0: 51 / 101})


def test_overlaps_of_matched_boxes_add_up():
    matches = counted((true((HERE, 0), (THERE, 0)), found((NEARLY_HERE, 0, 0.9), (THERE, 0, 0.8))))
    other = counted((true((THERE, 1)), found((THERE, 1, 0.1))))
    assert matches.overlap == pytest.approx(1.75)
    matches.merge(other)
    assert matches.overlap == pytest.approx(2.75)
    assert matches.true == {0: 2, 1: 1}


def test_of_equal_scores_the_first_box_comes_first():
    boxes = [(THERE, 0, 0.5)] * 39
    assert precisions((true((HERE, 0)), found((HERE, 0, 0.5), *boxes))) == {0: 1}
    assert precisions((true((HERE, 0)), found(*boxes, (HERE, 0, 0.5)))) == pytest.approx(
        {0: 1 / 40}
    )
    images = [(true((HERE, 0)), found((HERE, 0, 0.5)))] + [(true(), found(boxes[0]))] * 39
    assert precisions(*images) == {0: 1}
    assert precisions(*images[::-1]) == pytest.approx({0: 1 / 40})
    assert precisions((true((HERE, 0)), found((HERE, 0, 0.0)))) == {0: 0}


def test_a_recall_just_below_a_hundredth():
    """1 of 101 boxes is less than a recall of 0.01, 1 of 100 is not."""
    for count, reached in ((100, 2), (101, 1)):
        image = true(*[(HERE, 0)] * count), found((HERE, 0, 0.5))
        assert precisions(image) == pytest.approx({0: reached / 101})
