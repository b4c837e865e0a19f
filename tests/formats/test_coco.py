"""COCO documents: categories, boxes, crowds, splits, and documents that cannot be used."""

import json
import random

import pytest
from aiohttp import web
from pycocotools.coco import COCO

import recordgen
from recordgen import cli
from recordgen.errors import SourceError, UsageError
from recordgen.formats.coco_shapes import Shapes
from tests.formats.boxes import boxes_of
from tests.servers import serving

pytestmark = pytest.mark.once

CATEGORIES = [
    {"id": 18, "name": "dog", "supercategory": "animal"},
    {"id": 2, "name": "cat", "supercategory": "animal"},
    {"id": 90, "name": "owl", "supercategory": "bird"},
]


def image(number, name, **more):
    """Return an item of images."""
    return {"id": number, "file_name": name, "width": 40, "height": 20, **more}


def box(image_id, category, *corners, **more):
    """Return an item of annotations."""
    return {"image_id": image_id, "category_id": category, "bbox": list(corners), **more}


def write(path, **keys):
    """Write a document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(keys))
    return path


def test_boxes_splits_and_numbers(tmp_path, make_pictures, capsys):
    """Two documents of one folder: pixels become shares, categories keep their order by id."""
    make_pictures("train2017/a.jpg", "train2017/b.jpg", "train2017/e.jpg", "val2017/c.jpg")
    write(
        tmp_path / "in/annotations/instances_train2017.json",
        info={"year": 2017},
        images=[image(7, "a.jpg"), image(3, "b.jpg"), image(8, "e.jpg")],
        annotations=[box(3, 2, 0, 0, 40, 20), box(7, 18, 4, 5, 8, 10), box(7, 2, 0, 0, 4, 20)],
        categories=CATEGORIES,
    )
    write(
        tmp_path / "in/annotations/instances_val2017.json",
        categories=CATEGORIES,  # keys may have any order
        annotations=[box(1, 90, 10, 10, 20, 10)],
        images=[image(1, "c.jpg")],
    )
    assert cli.main(["convert", str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    assert "coco" in capsys.readouterr().out
    assert boxes_of(tmp_path / "out") == {
        "train2017/a.jpg": (
            "train",
            [("cat", 0, [0, 0, 0.1, 1]), ("dog", 1, [0.1, 0.25, 0.3, 0.75])],
        ),
        "train2017/b.jpg": ("train", [("cat", 0, [0, 0, 1, 1])]),
        "train2017/e.jpg": ("train", []),
        "val2017/c.jpg": ("eval", [("owl", 2, [0.25, 0.5, 0.75, 1])]),
    }
    assert recordgen.read_dataset(str(tmp_path / "out")).labels == ("cat", "dog", "owl")


def test_documents_in_folders_are_appended(tmp_path, make_pictures):
    """Paths of images start at the data set's folder, wherever its documents are."""
    make_pictures("train/a.jpg", "train/b.jpg")
    images = [image(1, "a.jpg"), image(2, "b.jpg")]
    boxes = [box(number, 2, 0, 0, 4, 20) for number in (1, 2)]
    document = tmp_path / "in/train/instances.json"
    write(document, images=images[:1], annotations=boxes[:1], categories=CATEGORIES)
    recordgen.convert(str(tmp_path / "in"), str(tmp_path / "out"))
    write(document, images=images, annotations=boxes, categories=CATEGORIES)
    for existing in (1, 2):
        found = recordgen.convert(str(tmp_path / "in"), str(tmp_path / "out"), append=True)
        assert (found.counts["rows_existing"], found.dataset.examples) == (existing, 2)


def test_roboflow(tmp_path, make_pictures):
    """Documents beside their images; category 0 only names the project; folders are splits."""
    for split in ("train", "valid"):
        make_pictures(f"{split}/{split}.jpg")
        write(
            tmp_path / f"in/{split}/_annotations.coco.json",
            images=[image(0, f"{split}.jpg")],
            annotations=[box(0, 1, 0, 0, 10, 10)],
            categories=[
                {"id": 0, "name": "cells", "supercategory": "none"},
                {"id": 1, "name": "wbc", "supercategory": "cells"},
            ],
        )
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
    assert boxes_of(tmp_path / "out") == {
        "train/train.jpg": ("train", [("wbc", 0, [0, 0, 0.25, 0.5])]),
        "valid/valid.jpg": ("eval", [("wbc", 0, [0, 0, 0.25, 0.5])]),
    }


def test_rejects_and_findings(tmp_path, make_pictures):
    """An image with a bad object is rejected as a whole; crowds are flagged, orphans reported."""
    make_pictures(*(f"{number}.jpg" for number in range(6)))
    path = write(
        tmp_path / "in/a.json",
        images=[image(number, f"{number}.jpg") for number in range(6)] + [image(9, "none.jpg")],
        annotations=[
            box(0, 2, 1, 1, 2, 2),
            box(0, 77, 1, 1, 2, 2, id=501),
            {"image_id": 1, "category_id": 2, "bbox": [1, 2, None, 4], "id": 502},
            box(2, 2, 1, 1, 2, 2),
            box(2, 2, 1, 1, 30, 10, iscrowd=1),
            box(3, 2, 1, 1, 2, float("nan"), id=503),
            {"image_id": 4, "category_id": 2, "segmentation": [[4, 5, 12, 5, 8, 15]]},
            box(55, 2, 1, 1, 2, 2),
        ],
        categories=CATEGORIES,
    )
    result = recordgen.convert(str(path), tmp_path / "out", max_reject_fraction=1)
    assert [(item.uri, item.code) for item in result.rejects] == [
        ("0.jpg", "bad_annotation"),
        ("1.jpg", "bad_annotation"),
        ("3.jpg", "bad_annotation"),
        ("none.jpg", "missing_file"),
    ]
    assert "501" in result.rejects[0].message
    assert {"image/object/is_crowd", "image/object/polygon/x"} < {*result.dataset.objects}
    assert {uri: len(each) for uri, (_, each) in boxes_of(tmp_path / "out").items()} == {
        "2.jpg": 2,
        "4.jpg": 1,
        "5.jpg": 0,
    }
    assert boxes_of(tmp_path / "out")["4.jpg"][1][0][2] == [0.1, 0.25, 0.3, 0.75]
    lines = (tmp_path / "out/lint.jsonl").read_text().splitlines()
    codes = [json.loads(line)["code"] for line in lines]
    assert "SKIPPED" in codes


def test_a_path_as_written_has_precedence(tmp_path, make_pictures):
    """An image of the same name in a nearer folder is another image."""
    make_pictures("train/1.jpg", "val/1.jpg", "c/1.jpg")
    path = write(
        tmp_path / "in/train/a.json",
        images=[image(1, "val/1.jpg"), image(2, "C:\\x\\c\\1.jpg")],
        annotations=[box(1, 2, 0, 0, 1, 1), box(2, 2, 0, 0, 1, 1)],
        categories=CATEGORIES,
    )
    recordgen.convert(str(path.parent.parent), tmp_path / "out")
    assert sorted(boxes_of(tmp_path / "out")) == ["c/1.jpg", "val/1.jpg"]


def test_sizes_that_are_missing_come_from_the_image(tmp_path, make_pictures):
    """Width and height may be missing or 0."""
    make_pictures("a.png", size=(80, 40))
    path = write(
        tmp_path / "in/a.json",
        images=[image(1, "a.png", width=0, height=0)],
        annotations=[box(1, 2, 8, 4, 8, 4)],
        categories=CATEGORIES,
    )
    recordgen.convert(str(path), tmp_path / "out")
    assert boxes_of(tmp_path / "out")["a.png"][1] == [("cat", 0, [0.1, 0.1, 0.2, 0.2])]


# the document, what the message names
UNUSABLE = [
    ({"images": [image(1, "a.jpg")], "annotations": [{"image_id": 1, "caption": "A"}]}, "captions"),
    (
        {"images": [image(1, "a.jpg")], "annotations": [{"image_id": 1, "segments_info": []}]},
        "panoptic",
    ),
    ({"images": [image(1, "a.jpg")], "categories": CATEGORIES}, "annotations"),
    ({"images": [image(1, "a.jpg")], "annotations": []}, "images .*categories"),
]


@pytest.mark.parametrize(("keys", "words"), UNUSABLE)
def test_documents_of_other_tasks_stop(keys, words, tmp_path):
    """Each is named before anything is written."""
    path = write(tmp_path / "instances.json", **keys)
    with pytest.raises(SourceError, match=words):
        recordgen.convert(str(path), tmp_path / "out")


@pytest.mark.parametrize(
    "text",
    [
        '{"images": [{"file_name": "a.jpg"}], "annotations": [{"image_id": 1',
        '{"images": [{"file_name": "a.jpg"} {"file_name": "b.jpg"}]}',
        '{"images": [{"file_name": "a.jpg"}], "x": ' + "[" * 100_000,
    ],
)
def test_a_damaged_document_is_named(text, tmp_path):
    """A cut, malformed or deeply nested document is an error with its path."""
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"a\.json: .*COCO"):
        recordgen.convert(str(path), tmp_path / "out")


def test_the_folder_of_coco_2017(tmp_path, make_pictures):
    """Captions and keypoints lie beside the instances, and the images in another folder."""
    make_pictures("train2017/a.jpg", "train2017/b.jpg")
    images = [image(1, "a.jpg"), image(2, "b.jpg")]
    folder = tmp_path / "in/annotations"
    write(
        folder / "captions_train2017.json",
        images=images,
        annotations=[{"image_id": 1, "caption": "A cat"}],
    )
    for name in ("instances", "person_keypoints"):
        write(
            folder / f"{name}_train2017.json",
            images=images,
            annotations=[box(1, 2, 0, 0, 40, 20)],
            categories=CATEGORIES,
        )
    recordgen.convert(str(tmp_path / "in"), tmp_path / "out")
    assert boxes_of(tmp_path / "out") == {
        "train2017/a.jpg": ("train", [("cat", 0, [0, 0, 1, 1])]),
        "train2017/b.jpg": ("train", []),
    }
    with pytest.raises(SourceError, match=str(folder)):
        recordgen.plan(str(folder / "instances_train2017.json"))


def test_a_document_on_a_web_server(tmp_path, make_pictures):
    """A web server lists no files, so paths in the document cannot be found."""
    make_pictures("a.jpg")
    write(
        tmp_path / "in/a.json",
        images=[image(1, "a.jpg")],
        annotations=[box(1, 2, 0, 0, 40, 20)],
        categories=CATEGORIES,
    )

    async def answer(request):
        return web.FileResponse(tmp_path / "in" / request.path[1:])

    with serving(answer) as server, pytest.raises(SourceError, match="bucket"):
        recordgen.plan(f"{server}/a.json")


def test_categories_that_differ_stop(tmp_path, make_pictures):
    """One id must not have two names."""
    make_pictures("train/a.jpg", "val/b.jpg")
    for split, name, label in (("train", "a.jpg", "cat"), ("val", "b.jpg", "dog")):
        write(
            tmp_path / f"in/{split}/x.json",
            images=[image(1, name)],
            annotations=[box(1, 1, 0, 0, 1, 1)],
            categories=[{"id": 1, "name": label}],
        )
    with pytest.raises(SourceError, match="category 1"):
        recordgen.plan(str(tmp_path / "in"))


def test_another_task_is_refused(tmp_path, make_pictures):
    """The message names the task that boxes have."""
    make_pictures("a.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(1, "a.jpg")],
        annotations=[box(1, 2, 0, 0, 1, 1)],
        categories=CATEGORIES,
    )
    with pytest.raises(UsageError, match="object_detection"):
        recordgen.plan(str(path), task="image_classification")


def test_boxes_equal_those_of_pycocotools(tmp_path, make_pictures):
    """COCO's own reader has the same boxes, up to float32."""
    rng = random.Random(0)
    names = [f"{number}.png" for number in range(20)]
    make_pictures(*names)
    annotations = []
    for number in range(60):
        left, top = rng.uniform(0, 30), rng.uniform(0, 10)
        corners = left, top, rng.uniform(1, 10), rng.uniform(1, 10)
        kind = rng.choice(CATEGORIES)["id"]
        annotations.append(box(rng.randrange(20), kind, *corners, id=number, area=1))
    path = write(
        tmp_path / "in/a.json",
        images=[image(number, name) for number, name in enumerate(names)],
        annotations=annotations,
        categories=CATEGORIES,
    )
    recordgen.convert(str(path), tmp_path / "out")
    found, theirs = boxes_of(tmp_path / "out"), COCO(str(path))
    for number, name in enumerate(names):
        expected = []
        for item in theirs.loadAnns(theirs.getAnnIds(imgIds=[number])):
            x, y, width, height = item["bbox"]
            [category] = theirs.loadCats([item["category_id"]])
            corners = [x / 40, y / 20, (x + width) / 40, (y + height) / 20]
            expected.append((category["name"], [round(value, 3) for value in corners]))
        ours = [
            (label, [round(each, 3) for each in corners]) for label, _, corners in found[name][1]
        ]
        assert len(ours) == len(expected)
        for (label, corners), (their_label, theirs_) in zip(
            sorted(ours), sorted(expected), strict=True
        ):
            assert label == their_label
            assert corners == pytest.approx(theirs_, abs=2e-3)


@pytest.mark.parametrize(("one", "other"), [("1", 1), (1, "1"), (1.0, 1), (7, 7.0)])
def test_ids_of_any_type(one, other, tmp_path, make_pictures):
    """pandas writes 7.0, and other programs "7": the boxes must not get lost."""
    make_pictures("a.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(one, "a.jpg")],
        annotations=[box(other, other, 0, 0, 40, 20)],
        categories=[{"id": one, "name": "cat"}],
    )
    recordgen.convert(str(path), tmp_path / "out")
    assert boxes_of(tmp_path / "out")["a.jpg"][1] == [("cat", 0, [0, 0, 1, 1])]


@pytest.mark.parametrize("ids", [(1, 1), (None, None)])
def test_images_that_share_an_id_are_rejected(ids, tmp_path, make_pictures):
    """The boxes of one would be stored for both."""
    make_pictures("a.jpg", "b.jpg", "c.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(ids[0], "a.jpg"), image(ids[1], "b.jpg"), image(3, "c.jpg")],
        annotations=[box(ids[0], 2, 0, 0, 40, 20), box(3, 2, 0, 0, 40, 20)],
        categories=CATEGORIES,
    )
    result = recordgen.convert(str(path), tmp_path / "out", max_reject_fraction=1)
    assert [item.uri for item in result.rejects] == ["a.jpg", "b.jpg"]
    assert list(boxes_of(tmp_path / "out")) == ["c.jpg"]


@pytest.mark.parametrize("annotations", [{"1": [box(1, 2, 1, 1, 2, 2)]}, [[box(1, 2, 1, 1, 2, 2)]]])
def test_annotations_of_another_shape_stop(annotations, tmp_path, make_pictures):
    """Otherwise all images would be images without objects."""
    make_pictures("a.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(1, "a.jpg")],
        annotations=annotations,
        categories=CATEGORIES,
    )
    with pytest.raises(SourceError, match="image_id"):
        recordgen.plan(str(path))


def test_a_category_with_two_names_stops(tmp_path, make_pictures):
    """The class of its boxes would be a guess."""
    make_pictures("a.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(1, "a.jpg")],
        annotations=[box(1, 2, 1, 1, 2, 2)],
        categories=[*CATEGORIES, {"id": 2, "name": "cow"}],
    )
    with pytest.raises(SourceError, match="category 2"):
        recordgen.plan(str(path))


def test_numbers_that_no_float_holds(tmp_path, make_pictures):
    """JSON's integers have no largest value."""
    make_pictures("a.jpg", "b.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(1, "a.jpg"), image(2, "b.jpg")],
        annotations=[box(1, 2, 1, 1, 10**400, 2), box(2, 2, 1, 1, 2, 2)],
        categories=CATEGORIES,
    )
    result = recordgen.convert(str(path), tmp_path / "out", max_reject_fraction=1)
    assert [item.uri for item in result.rejects] == ["a.jpg"]


def test_class_names_with_line_breaks_stop(tmp_path, make_pictures):
    make_pictures("a.jpg")
    path = write(
        tmp_path / "in/a.json",
        images=[image(1, "a.jpg")],
        annotations=[box(1, 2, 1, 1, 2, 2)],
        categories=[*CATEGORIES, {"id": 99, "name": "a\nb"}],
    )
    with pytest.raises(SourceError, match="class"):
        recordgen.plan(str(path))


def test_points_in_the_temporary_file_are_those_in_memory():
    """The number of points that are kept in memory changes none of them."""
    rng = random.Random(4)
    outlines = [
        [[rng.uniform(-2, 42) for _ in range(6 + 2 * n)] for n in range(at % 4)] for at in range(30)
    ]
    found = []
    for count in (1, 50, 1 << 18):
        shapes = Shapes(at_once=count)
        for outline in outlines:
            shapes.add({"segmentation": outline})
        found.append([shapes.polygons(at) for at in range(30)])
    assert found[0] == found[1] == found[2]
    assert [polygons.sizes for polygons in found[0][:4]] == [(), (3,), (3, 4), (3, 4, 5)]
