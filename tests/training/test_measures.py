"""Measures of models, counted by hand, and compared with the libraries that define them."""

import io
import math
from contextlib import redirect_stdout

import keras
import numpy as np
import pytest
import seqeval.metrics as seqeval
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score, roc_auc_score

from recordgen.tasks.texts.tags import tag_names
from recordgen.training import measures

# --- The area under the ROC curve ---


def counted_labels(truth, scores, weights=1.0):
    counts = measures.ManyLabelsAccumulator(truth.shape[1])
    counts.add(truth, scores, weights)
    return counts


@pytest.mark.parametrize("base_rate", [0.5, 0.001])
@pytest.mark.parametrize("seed", range(5))
def test_the_area_is_that_of_scikit_learn_and_keras(base_rate, seed):
    """Each label's area is exact, with weights, ties, examples of weight 0, and in parts.

    This includes rare labels, whose scores are all close to 0.
    """
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, (300, 3)).astype(np.float32)
    odds = base_rate / (1 - base_rate) * np.exp(random.normal(truth, 1).round(1))
    scores = (odds / (1 + odds)).astype(np.float32)
    weights = random.integers(0, 4, 300).astype(np.float32)
    counts = counted_labels(truth[:99], scores[:99], weights[:99])
    counts.merge(counted_labels(truth[99:], scores[99:], weights[99:]))
    columns = zip(truth.T, scores.T, strict=True)
    exact = [roc_auc_score(*each, sample_weight=weights) for each in columns]
    assert list(counts.by_label().values()) == pytest.approx(exact, abs=2e-3)
    assert counts.score() == pytest.approx(np.mean(exact), abs=2e-3)
    metric = keras.metrics.AUC(multi_label=True, thresholds=list(measures.THRESHOLDS))
    metric.update_state(truth, scores)
    expected = float(metric.result())
    assert counted_labels(truth, scores).score() == pytest.approx(expected, abs=1e-5)


def test_a_label_of_all_or_no_examples_has_no_area():
    """It is left out of the mean."""
    truth = np.array([[1, 1, 0], [0, 1, 0]], np.float32)
    scores = np.array([[0.9, 0.5, 0.5], [0.1, 0.5, 0.5]], np.float32)
    counts = counted_labels(truth, scores)
    assert (counts.by_label(), counts.score()) == ({0: 1}, 1)
    assert np.isnan(counted_labels(truth[:, 1:], scores[:, 1:]).score())


# --- Average precision ---

HERE, THERE = (0.0, 0.0, 0.4, 0.4), (0.5, 0.5, 0.9, 0.9)
NEARLY_HERE = (0.0, 0.0, 0.4, 0.3)  # 0.75 of it


def true(*boxes):
    return np.array([(*box, label) for box, label in boxes], np.float32).reshape(-1, 5)


def found(*boxes):
    rows = [(*box, label, score) for box, label, score in boxes]
    return np.array(rows, np.float32).reshape(-1, 6)


def counted_boxes(*images):
    counts = measures.BoxAccumulator(2)
    for true_boxes, found_boxes in images:
        counts.add(true_boxes[None], found_boxes[None])
    return counts


def precisions(*images):
    return counted_boxes(*images).by_label()


# (box, class); (box, class, score); AP by class
MATCHES = [
    ([(HERE, 0)], [], {0: 0}),
    ([], [(HERE, 0, 0.9)], {}),
]


@pytest.mark.parametrize(("is_there", "is_found", "expected"), MATCHES)
def test_without_true_or_found_boxes(is_there, is_found, expected):
    """A class scores 0 if nothing is found, and has no score if nothing is there."""
    assert precisions((true(*is_there), found(*is_found))) == pytest.approx(expected)


@pytest.mark.parametrize(("order", "expected"), [((0, 1), 51 / 101), ((1, 0), 1)])
def test_of_equally_overlapped_boxes_the_last_is_matched(order, expected):
    """As pycocotools chooses."""
    # The first found box overlaps both true boxes by two thirds, the second only the small one.
    large, small = ((2 / 8, 1 / 8, 5 / 8, 4 / 8), (2 / 8, 2 / 8, 4 / 8, 4 / 8))
    there = [((large, small)[number], 0) for number in order]
    seen = [((2 / 8, 2 / 8, 5 / 8, 4 / 8), 0, 0.9), ((2 / 8, 2 / 8, 3 / 8, 4 / 8), 0, 0.8)]
    image = true(*there), found(*seen)
    assert precisions(image) == pytest.approx({0: expected})
    assert of_coco([image]) == pytest.approx({0: expected})


def test_padding_is_no_box():
    """Rows of -1 are neither true nor found."""
    padded = np.vstack([true((HERE, 0)), np.full((2, 5), -1, np.float32)])
    answers = np.vstack([np.full((2, 6), -1, np.float32), found((HERE, 0, 0.1))])
    assert precisions((padded, answers)) == {0: 1}


def test_boxes_without_area_overlap_nothing():
    """They divide by no zero."""
    boxes = np.array([(0.2, 0.2, 0.2, 0.5), HERE], np.float32)
    np.testing.assert_allclose(measures.overlaps_of(boxes, boxes), [[0, 0], [0, 1]])


CORNERS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
LABELS = st.integers(0, 2)
# Distinct scores, because the order of equal scores is not specified.
BOX = st.tuples(CORNERS, LABELS)
IMAGES = st.lists(st.tuples(st.lists(BOX, max_size=5), st.lists(BOX, max_size=6)), max_size=6)


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
    truth, annotations, answers = COCO(), [], []
    for image, (there, seen) in enumerate(images):
        for x1, y1, x2, y2, label in there.tolist():
            width, height, is_crowd = x2 - x1, y2 - y1, label <= measures.CROWD
            box = {"bbox": [x1, y1, width, height], "area": width * height}
            box |= {"category_id": int(measures.CROWD - label if is_crowd else label)}
            number = len(annotations) + 1  # 0 means no box
            annotations.append({"id": number, "image_id": image, "iscrowd": int(is_crowd), **box})
        for x1, y1, x2, y2, label, score in seen.tolist():
            answers.append([image, x1, y1, x2 - x1, y2 - y1, score, label])
    labels = sorted({item["category_id"] for item in annotations})
    truth.dataset = {
        "images": [{"id": image} for image in range(len(images))],
        "annotations": annotations,
        "categories": [{"id": label} for label in labels],
    }
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
    """Average precision by class, at an overlap of half."""
    images = list(arrays(images, np.random.default_rng(seed)))
    expected = of_coco(images)
    assert precisions(*images) == pytest.approx(expected)
    first, second = counted_boxes(*images[1::2]), counted_boxes(*images[::2])
    first.merge(second)
    assert first.by_label() == pytest.approx(expected)


def with_crowds(images, random):
    """Return images of which some true boxes are around crowds."""
    for there, seen in images:
        is_crowd = random.random(len(there)) < 0.4
        labels = np.where(is_crowd, measures.CROWD - there[:, 4], there[:, 4])
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


def test_overlaps_of_matched_boxes_add_up():
    """Merged counts have the sum of both."""
    answers = found((NEARLY_HERE, 0, 0.9), (THERE, 0, 0.8))
    matches = counted_boxes((true((HERE, 0), (THERE, 0)), answers))
    other = counted_boxes((true((THERE, 1)), found((THERE, 1, 0.1))))
    assert matches.overlap == pytest.approx(1.75)
    matches.merge(other)
    assert matches.overlap == pytest.approx(2.75)
    assert matches.true == {0: 2, 1: 1}


def test_of_equal_scores_the_first_box_comes_first():
    """In an image and across images, as pycocotools sorts."""
    boxes = [(THERE, 0, 0.5)] * 39
    assert precisions((true((HERE, 0)), found((HERE, 0, 0.5), *boxes))) == {0: 1}
    last = true((HERE, 0)), found(*boxes, (HERE, 0, 0.5))
    assert precisions(last) == pytest.approx({0: 1 / 40})
    images = [(true((HERE, 0)), found((HERE, 0, 0.5)))] + [(true(), found(boxes[0]))] * 39
    assert precisions(*images) == {0: 1}
    assert precisions(*images[::-1]) == pytest.approx({0: 1 / 40})
    assert precisions((true((HERE, 0)), found((HERE, 0, 0.0)))) == {0: 0}


def test_a_recall_just_below_a_hundredth():
    """1 of 101 boxes is less than a recall of 0.01, 1 of 100 is not."""
    for count, reached in ((100, 2), (101, 1)):
        image = true(*[(HERE, 0)] * count), found((HERE, 0, 0.5))
        assert precisions(image) == pytest.approx({0: reached / 101})


# --- Mean IoU ---

# true mask, answer → IoU by class, mean
MASKS = [
    # class 0: 1 right, 2 true, 1 answered → 1 / 2; class 1: 2 right, 2 true, 3 answered → 2 / 3
    ([[0, 0], [1, 1]], [[0, 1], [1, 1]], {0: 1 / 2, 1: 2 / 3}, 7 / 12),
    # an answer whose class has no true pixel lowers the others only
    ([[0, 0], [0, 0]], [[0, 0], [0, 2]], {0: 3 / 4}, 3 / 4),
    # pixels of a class that the model does not know are wrong answers
    ([[0, 0], [-1, -1]], [[0, 0], [0, 1]], {0: 2 / 3}, 2 / 3),
    ([[255, 255]], [[0, 1]], {}, math.nan),
]


@pytest.mark.parametrize(("true", "answer", "by_class", "mean"), MASKS)
def test_cases_by_hand(true, answer, by_class, mean):
    """Right pixels of a class divided by those that have it in either mask."""
    counts = measures.MaskAccumulator(3)
    counts.add(np.array([true], np.int32), np.array([answer], np.int32))
    assert counts.by_label() == pytest.approx(by_class)
    assert counts.score() == pytest.approx(mean, nan_ok=True)
    assert counts.examples == 1


def test_an_unknown_class_has_an_iou_of_0():
    """The mean also counts the classes that the model does not know."""
    counts = measures.MaskAccumulator(2)
    counts.add(np.array([[[0, -1]]], np.int32), np.array([[[0, 1]]], np.int32))
    counts.add_unknown([b"bird", b""])
    assert counts.score() == pytest.approx(1 / 2)
    assert counts.known() == 1


def test_parts_add_up_to_keras_mean_iou():
    """Merged counts of two batches are those of all pixels, as Keras computes them."""
    random = np.random.default_rng(0)
    true, answers = random.integers(0, 4, (2, 6, 8, 9))
    true[random.random(true.shape) < 0.1] = 255
    first, second = measures.MaskAccumulator(4), measures.MaskAccumulator(4)
    first.add(true[:2], answers[:2])
    second.add(true[2:], answers[2:])
    first.merge(second)
    metric = keras.metrics.MeanIoU(4, ignore_class=255)
    metric.update_state(true, answers)
    assert first.score() == pytest.approx(float(metric.result()))
    assert first.loss() == pytest.approx((true != answers)[true != 255].mean())


# --- F1 of entities ---

NAMES = np.array(tag_names(["city", "date", "person"]))


def counted_entities(truth, predicted):
    """Count texts whose tags have all or nothing of the score."""
    counts = measures.EntityAccumulator(3)
    counts.add(np.asarray(truth), np.eye(len(NAMES), dtype=np.float32)[np.asarray(predicted)])
    return counts


@pytest.mark.parametrize("seed", range(20))
def test_f1_is_that_of_seqeval(seed):
    """Over all entities and of each label, for texts of any length, in one part or in several."""
    random = np.random.default_rng(seed)
    truth = random.choice(7, (6, 12), p=[0.3, *[0.7 / 6] * 6])
    predicted = np.where(random.random(truth.shape) < 0.7, truth, random.integers(0, 7, (6, 12)))
    lengths = random.integers(1, 13, 6)
    truth[np.arange(12) >= lengths[:, None]] = -1
    whole, parts = counted_entities(truth, predicted), measures.EntityAccumulator(3)
    for row in range(6):
        parts.merge(counted_entities(truth[row : row + 1], predicted[row : row + 1]))
    tags = [
        [NAMES[row[:length]].tolist() for row, length in zip(rows, lengths, strict=True)]
        for rows in (truth, predicted)
    ]
    for counts in (whole, parts):
        assert counts.score() == pytest.approx(seqeval.f1_score(*tags))
        by_label = list(seqeval.f1_score(*tags, average=None))
        assert list(counts.by_label().values()) == pytest.approx(by_label)


def test_texts_without_entities_have_no_score():
    """F1 is NaN, and no label has one."""
    assert np.isnan(measures.EntityAccumulator(3).score())
    assert measures.EntityAccumulator(3).by_label() == {}


# --- Scores of tables ---


def counted_table(truth, scores):
    width = scores.shape[1]
    counts = measures.TableAccumulator(width if width > 1 else 0)
    counts.add(truth, scores)
    return counts


def rows_in_parts(truth, scores, parts):
    """Return the merged counts of parts of the rows; some parts are empty."""
    merged = counted_table(truth[:0], scores[:0])
    for part in np.array_split(np.arange(len(truth)), parts):
        merged.merge(counted_table(truth[part], scores[part]))
    return merged


def test_accuracy_and_cross_entropy_equal_scikit_learns():
    """Also in batches and merged parts, some of them empty."""
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(4), 50).astype(np.float32)
    truth = random.integers(0, 4, 50)
    batches = counted_table(truth[:20], scores[:20])
    batches.add(truth[20:], scores[20:])
    for counts in (
        counted_table(truth, scores),
        rows_in_parts(truth, scores, 7),
        rows_in_parts(truth, scores, 60),
        batches,
    ):
        assert counts.examples == 50
        assert counts.score() == pytest.approx(accuracy_score(truth, scores.argmax(1)))
        assert counts.loss() == pytest.approx(log_loss(truth, scores, labels=range(4)))


def test_r2_and_squared_error_equal_scikit_learns():
    """Also for numbers far from zero, in any parts."""
    random = np.random.default_rng(1)
    truth = random.normal(1e6, 1, 100).astype(np.float32)
    scores = (truth + random.normal(0, 0.5, 100)).astype(np.float32)[:, None]
    wide = truth.astype(np.float64)
    for counts in (
        counted_table(truth, scores),
        rows_in_parts(truth, scores, 7),
        rows_in_parts(truth, scores, 120),
    ):
        assert counts.examples == 100
        assert counts.targets.mean[0] == pytest.approx(wide.mean(), rel=1e-12)
        assert counts.score() == pytest.approx(r2_score(wide, scores[:, 0]))
        assert counts.loss() == pytest.approx(mean_squared_error(wide, scores[:, 0]))


def test_two_scores_are_classes_and_one_is_a_number():
    """Rounding beyond 1 costs no loss."""
    counts = counted_table(np.array([1, 0]), np.array([[0.25, 0.75], [0.0, 1.0]], np.float32))
    assert (counts.examples, counts.score()) == (2, 0.5)
    assert counts.loss() == pytest.approx(-(math.log(0.75) + math.log(1e-7)) / 2)
    sure = counted_table(
        np.array([1]), np.array([[0.0, 1.0 + 1e-6]], np.float32)
    )  # rounding of softmax
    assert sure.loss() == 0
    assert [measures.TableAccumulator.of_scores(np.zeros(n)).classes for n in (1, 2)] == [0, 2]


def test_without_rows_or_with_equal_targets_there_is_no_score():
    """It is NaN, and a constant answer scores 0."""
    for classes in (0, 2):
        empty = measures.TableAccumulator(classes)
        empty.merge(measures.TableAccumulator(classes))
        assert empty.examples == 0
        assert all(map(math.isnan, (empty.score(), empty.loss())))
    assert math.isnan(counted_table(np.array([2.0, 2.0]), np.array([[2.0], [3.0]])).score())
    assert counted_table(np.array([1.0, 2.0]), np.array([[9.0], [9.0]])).score() == 0
    assert counted_table(np.array([1.0, 2.0]), np.array([[1.0], [2.0]])).score() == 1
