"""The rows of each task: annotations, and the features that they become."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

import recordgen
from recordgen import options
from recordgen.core.dataset.manifest import LABELS_FILE
from recordgen.core.dataset.vocabulary import build_vocabulary
from recordgen.core.records.example import parse_example, serialize_example
from recordgen.core.rows.row import Adjustments, Row
from recordgen.core.task.annotation import AnnotationError
from recordgen.errors import NothingToConvertError, UsageError
from recordgen.options import ConvertOptions
from recordgen.registry import TASK_CHOICES
from recordgen.tasks import TASKS, ImageClassification, ImageMultiLabel, ObjectDetection, task_for
from recordgen.tasks.object_detection.annotation import Box, Boxes
from recordgen.tasks.object_detection.stored_boxes import box_features
from tests.conftest import encoded, error_of, exif_of, write_file

CAT = '[["cat",0.1,0.2,0.5,0.6]]'


def test_options_name_all_tasks():
    """The option ``task`` allows exactly the existing tasks."""
    assert (options.AUTO, *TASKS) == tuple(TASK_CHOICES)
    assert task_for(ConvertOptions(task="object_detection")).name == "object_detection"
    with pytest.raises(UsageError, match="task"):
        task_for(ConvertOptions())


WITHOUT_ONE_LABEL = ("image_multi_label", "object_detection", "text_multi_label", "text_entities")


@pytest.mark.parametrize("name", [*WITHOUT_ONE_LABEL, "tabular"])
def test_shards_by_label_need_one_label(name):
    """Tasks with several labels refuse it."""
    with pytest.raises(UsageError, match=rf"shard_by=label .*{name}\b"):
        task_for(ConvertOptions(task=name, shard_by="label"))


CAT_OF_ALL = '[["cat",0.0,0.0,1.0,1.0]]'


def boxes(*found):
    return {"boundingBoxAnnotations": list(found)}


def box(**corners):
    return {"displayName": "cat", "xMin": 0.1, "yMin": 0.2, "xMax": 0.5, "yMax": 0.6, **corners}


def in_json(found):
    """Return a JSON line with these boxes."""
    keys = ("displayName", "xMin", "yMin", "xMax", "yMax")
    return boxes(*(dict(zip(keys, item, strict=True)) for item in found))


def named(*labels):
    return {"classificationAnnotations": [{"displayName": label, "x": 1} for label in labels]}


# task, fields after the path or object of a JSON line, annotation
SAID = [
    (ImageClassification(), [], None),
    (ImageClassification(), ["cat"], "cat"),
    (ImageMultiLabel(), [], None),
    (ImageClassification(), ["[unknown]"], "[unknown]"),
    (ImageMultiLabel(), ["dog", "cat", "", "dog"], '["cat", "dog"]'),
    (ObjectDetection(), [], None),
    (ObjectDetection(), ["cat", ".1", ".2", "", "", ".5", ".6"], CAT),
    (ObjectDetection(), ["cat", ".5", ".6", "", "", ".1", ".2"], CAT),
    (ObjectDetection(), ["cat", ".5", ".2", "", "", ".1", ".6"], CAT),
    (ObjectDetection(), ["cat", ".1", ".2", ".5", ".2", ".5", ".6", ".1", ".6"], CAT),
    (ObjectDetection(), ["cat", ".1", ".3", ".4", ".2", ".5", ".6", ".2", ".6"], CAT),
    (ObjectDetection(), ["cat", "0", "0", "", "", "1", "1"], CAT_OF_ALL),
    (ImageClassification(), {}, None),
    (ImageClassification(), {"classificationAnnotation": {"displayName": " cat "}}, "cat"),
    (ImageMultiLabel(), named(), None),
    (ImageMultiLabel(), named("b", "a"), '["a", "b"]'),
    (ImageMultiLabel(), {"classificationAnnotation": {"displayName": "a"}}, '["a"]'),
    (ObjectDetection(), {}, None),
    (ObjectDetection(), boxes(box(yMin="0.2", xMax=".5")), CAT),
]

ROW = Row("a.csv", 7, None, "1.jpg", None)


def read(task, said, adjusted):
    return (task.from_json if isinstance(said, dict) else task.from_fields)(said, adjusted)


@pytest.mark.parametrize(("task", "said", "annotation"), SAID)
def test_fields_and_json_lines_give_the_annotation(task, said, annotation):
    """Both forms of a row give the annotation in the formats' documentation, as it is."""
    adjusted = Adjustments()
    assert read(task, said, adjusted) == annotation
    assert not adjusted.taken_for(ROW)


# corners; results of clip, drop and reject: corners, or a word of the message; what is counted
BAD_BOXES = [
    ((-0.1, 0.2, 0.5, 1.2), (0, 0.2, 0.5, 1), "outside 0..1", {"boxes_clipped": 1}),
    ((0.5, 0.2, 0.1, 0.6), (0.1, 0.2, 0.5, 0.6), "inverted", {"boxes_swapped": 1}),
    ((0.5, 0.6, -0.1, 0.2), (0, 0.2, 0.5, 0.6), "inverted and outside 0..1", None),
    ((0.1, 0.2, 0.1, 0.6), None, "empty", {"boxes_dropped": 1}),
    ((1.1, 0.2, 1.3, 0.6), None, "outside 0..1 and empty", {"boxes_dropped": 1}),
]


def test_a_box_that_a_line_repeats():
    """It is stored once, and counted, which explains the number of boxes."""
    again = box(xMin="0.10000000001")  # the same as float32
    adjusted = Adjustments()
    found = ObjectDetection("clip").from_json(boxes(box(), again, box(displayName="x")), adjusted)
    assert len(Boxes.from_json(found).boxes) == 2
    [noted] = adjusted.taken_for(ROW)
    assert noted.code == "boxes_repeated"


@pytest.mark.parametrize(("corners", "clipped", "words", "counted"), BAD_BOXES)
def test_bad_boxes_are_clipped_dropped_or_rejected_and_counted(corners, clipped, words, counted):
    """Each change names its row and box."""
    record = in_json([("bad", *corners), ("good", 0.1, 0.2, 0.5, 0.6)])
    adjusted = Adjustments()
    found = [*Boxes.from_json(ObjectDetection("clip").from_json(record, adjusted)).boxes]
    expected = [] if clipped is None else [Box("bad", *clipped)]
    assert found == [*expected, Box("good", 0.1, 0.2, 0.5, 0.6)]
    noted = adjusted.taken_for(ROW)
    assert Counter(item.code for item in noted) == (
        counted or {"boxes_clipped": 1, "boxes_swapped": 1}
    )
    shown = f"the box {','.join(f'{value:g}' for value in corners)} of 'bad' is "
    assert all(item[:3] == (*ROW[:2], "1.jpg") for item in noted)
    assert all(item.message.startswith(shown) for item in noted)

    found = [*Boxes.from_json(ObjectDetection("drop").from_json(record, adjusted)).boxes]
    assert found == [Box("good", 0.1, 0.2, 0.5, 0.6)]
    [item] = adjusted.taken_for(ROW)
    assert item.code == "boxes_dropped"
    assert item.message.startswith(f"{shown}{words};")

    with pytest.raises(AnnotationError, match=f"is {words}; --bad-boxes clip"):
        ObjectDetection("reject").from_json(record, adjusted)


_labels = (
    st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1)
    .map(str.strip)
    .filter(lambda text: text.lower() not in ("nan", "<na>"))  # rejected
    .filter(lambda text: not text.startswith(("[", "{")))  # lists are rejected
)
_share = st.floats(0, 1)


@st.composite
def _boxes(draw):
    sides = st.lists(_share, min_size=2, max_size=2).map(sorted)
    xs, ys = (draw(sides.filter(lambda side: side[1] - side[0] > 1e-6)) for _ in "xy")
    return Box(draw(_labels.filter(bool)), xs[0], ys[0], xs[1], ys[1])


def as_stored(found):
    return Box(found.label, *np.float32(found[1:]).tolist())


@given(st.lists(_boxes(), min_size=1, max_size=5))
@example([Box("a", 0.029918516954645757, 0.30689956139328145, 0.5, 0.6)])
def test_boxes_come_back_from_a_record(found):
    """JSON line → annotation → features → record → annotation: float32 loses nothing."""
    task = ObjectDetection()
    said = task.from_json(in_json(found), Adjustments())
    assert said is not None
    assert task.from_json(in_json(Boxes.from_json(said).boxes), Adjustments()) == said
    vocabulary = build_vocabulary(task.labels(said), "text")
    values = box_features(Boxes.from_json(said), vocabulary)
    stored = parse_example(b"".join(serialize_example(values)))
    assert task.from_features(stored) == said
    assert {*map(as_stored, Boxes.from_json(said).boxes)} == {*map(as_stored, found)}
    assert not task.contradicts(said, task.from_features(stored))
    more = task.from_json(in_json([*found, Box("cat", 0.75e-7, 0.2, 0.5, 0.6)]), Adjustments())
    assert more is not None
    assert task.contradicts(more, said)
    assert not task.contradicts(said, more)


@given(st.sets(_labels.filter(bool), min_size=1, max_size=5))
def test_labels_come_back_from_a_record(found):
    """Fields → annotation → features → record → annotation, in the order of the vocabulary."""
    task = ImageMultiLabel()
    said = task.from_fields(sorted(found, reverse=True), Adjustments())
    assert said is not None
    assert set(task.labels(said)) == found
    vocabulary = build_vocabulary(found, "text")
    names = "image/class/text", "image/class/label"
    values = vocabulary.features(task.labels(said), names)
    stored = parse_example(b"".join(serialize_example(values)))
    assert stored["image/class/label"] == list(range(len(found)))
    assert task.from_features(stored) == said


def painted(orientation, kind="PNG", **settings):
    """Return a gray image of 160×80 pixels with a red box, and an Exif orientation."""
    image = Image.new("RGB", (160, 80), "gray")
    image.paste((255, 0, 0), (16, 8, 64, 24))
    return encoded(image, kind, exif=exif_of(orientation), **settings)


@pytest.mark.parametrize("resize", [None, "fit", "center_crop"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_rows_of_turned_images_are_known(orientation, resize, tmp_path):
    """A row matches its example after boxes were turned or moved; another box does not match."""
    options = {} if resize is None else {"image_size": "60", "resize": resize}
    (tmp_path / "a.png").write_bytes(painted(orientation))
    source = write_file(tmp_path / "a.csv", "TRAIN,a.png,red,.323456789012,.3,,,.6,.7,,\n")
    recordgen.convert(str(source), tmp_path / "out", **options)
    again = recordgen.convert(str(source), tmp_path / "out", append=True, **options)
    assert (again.dataset.rows.existing, again.rejects) == (1, ())
    source.write_text("TRAIN,a.png,red,.4,.3,,,.6,.7,,\n")
    options |= {"append": True, "max_reject_fraction": 1}
    arguments = recordgen.convert, source, tmp_path / "out"
    error = error_of(NothingToConvertError, *arguments, **options)
    assert [item.code for item in error.rejects] == ["conflicting_labels"]


def test_boxes_outside_of_a_crop(tmp_path):
    """A box outside the stored image is dropped, and counted; its row can be appended again."""
    (tmp_path / "a.png").write_bytes(painted(1))
    source = tmp_path / "a.csv"
    source.write_text(
        "TRAIN,a.png,red,.1,.1,,,.4,.3,,\nTRAIN,a.png,gone,0,0,,,.2,1,,\nTRAIN,b.png,gone,0,0,,,.2,1,,\n"
    )
    (tmp_path / "b.png").write_bytes(painted(1))
    crop = {"image_size": "80", "resize": "center_crop"}
    done = recordgen.convert(str(source), tmp_path / "out", **crop)
    assert done.dataset.splits["train"].labels == {"red": 1}
    assert done.dataset.splits["train"].unlabelled == 1
    assert done.dataset.rows.adjusted == {"boxes_cut": 1, "boxes_outside": 2}
    again = recordgen.convert(str(source), tmp_path / "out", append=True, **crop)
    assert (again.dataset.rows.existing, again.rejects) == (2, ())


def test_unread_images_are_not_upright():
    """check=none turns no image, so boxes of the upright image would be wrong."""
    with pytest.raises(UsageError, match="check=none"):
        ConvertOptions(box_orientation="upright", check="none")


def test_the_object_detection_api_reads_the_label_map(make_images, make_csv, tmp_path):
    """Only detection has a label_map.pbtxt, which counts from 1, in addition to labels.txt.

    If another task overwrites the output, it is removed.
    """
    [image] = make_images(1)
    csv = make_csv([f'TRAIN,{image},"a ""b""",0,0,,,1,1,,', f"TRAIN,{image},a,0,0,,,1,1,,"])
    recordgen.convert(csv, tmp_path / "boxes")
    assert (tmp_path / "boxes" / LABELS_FILE).read_text() == 'a\na "b"\n'
    assert (tmp_path / "boxes" / "label_map.pbtxt").read_text() == (
        'item {\n  id: 1\n  name: "a"\n}\nitem {\n  id: 2\n  name: "a \\"b\\""\n}\n'
    )
    recordgen.convert(make_csv([f"TRAIN,{image},a"]), tmp_path / "boxes", overwrite=True)
    assert not (tmp_path / "boxes" / "label_map.pbtxt").exists()
