"""COCO documents: categories, boxes, crowds, splits, and documents that cannot be used."""

import json

import pytest
from aiohttp import web

import recordgen
from recordgen.errors import SourceError
from recordgen.formats.coco_document import CocoDocument, Image
from recordgen.storage.local import Spool
from tests.formats.sources import Reading, refusal, write_files
from tests.servers import serving

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


def coco(*images, boxes=None, **more):
    """Return a document; image 1 has a cat at (4, 5, 8, 10) unless boxes are given."""
    boxes = [box(1, 2, 4, 5, 4, 5)] if boxes is None else boxes
    content = {"images": images, "annotations": boxes, "categories": CATEGORIES}
    return json.dumps({**content, **more})


A, B = image(1, "a.jpg"), image(2, "b.jpg")
AB = ("a.jpg", "b.jpg")
WHOLE = box(1, 2, 0, 0, 40, 20)


def test_an_image_root_holds_the_images_of_a_document(tmp_path, make_pictures, monkeypatch):
    """A document is read alone, though its images are in another folder."""
    monkeypatch.chdir(tmp_path)
    make_pictures("far/a.jpg")
    write_files(tmp_path / "in", {"docs/one.json": coco(A)})
    for root in ("", f"{tmp_path}/"):
        found = Reading(f"{root}in/docs/one.json", image_root=f"{root}in/far")
        assert [row.uri for row in found.rows] == ["far/a.jpg"]


def test_roboflow(outcome):
    """Category 0 only names the project, and is no class."""
    categories = [
        {"id": 0, "name": "cells", "supercategory": "none"},
        {"id": 1, "name": "wbc", "supercategory": "cells"},
    ]
    document = coco(image(0, "a.jpg"), boxes=[box(0, 1, 0, 0, 10, 10)], categories=categories)
    found = outcome({"_annotations.coco.json": document}, "a.jpg")
    assert found.images == {"a.jpg": [("wbc", [0, 0, 0.25, 0.5])]}
    assert found.classes == ("wbc",)


def test_annotations_of_unlisted_images_are_only_counted(monkeypatch):
    """They are not unpacked."""
    document = CocoDocument([Image(1, "a.jpg", 40, 20)])
    for number in (1, 55, 55, 56):
        document.add("annotations", box(number, 2, 1, 1, 2, 2))
    monkeypatch.setattr(Spool, "__getitem__", None)
    [note] = document.notes()
    assert note.message.startswith("3 ")


def test_a_path_as_written_has_precedence(outcome):
    """An image of the same name in a nearer folder is another image."""
    document = coco(image(1, "val/1.jpg"), image(2, "C:\\x\\c\\1.jpg"))
    found = outcome({"train/a.json": document}, "train/1.jpg", "val/1.jpg", "c/1.jpg")
    assert sorted(found.images) == ["c/1.jpg", "val/1.jpg"]


CAPTIONS = json.dumps({"images": [A], "annotations": [{"image_id": 1, "caption": "A"}]})
PANOPTIC = json.dumps({"images": [A], "annotations": [{"image_id": 1, "segments_info": []}]})
CUT = '{"images": [{"file_name": "a.jpg"}], "annotations": [{"image_id": 1'

# the document beside a.jpg, what the message names
UNUSABLE = [
    (CAPTIONS, "captions"),
    (PANOPTIC, "panoptic"),
    (json.dumps({"images": [A], "categories": CATEGORIES}), "annotations"),
    (json.dumps({"images": [A], "annotations": []}), "images .*categories"),
    # cut, malformed or deeply nested
    (CUT, r"a\.json: .*COCO"),
    ('{"images": [{"file_name": "a.jpg"} {"file_name": "b.jpg"}]}', r"a\.json: .*COCO"),
    ('{"images": [{"file_name": "a.jpg"}], "x": ' + "[" * 100_000, r"a\.json: .*COCO"),
    # otherwise, all images would be images without objects
    (coco(A, boxes={"1": [WHOLE]}), "image_id"),
    (coco(A, boxes=[[WHOLE]]), "image_id"),
    # the class would be a guess
    (coco(A, categories=[*CATEGORIES, {"id": 2, "name": "cow"}]), "category 2"),
    (coco(A, categories=[*CATEGORIES, {"id": 99, "name": "a\nb"}]), "class"),
]


@pytest.mark.parametrize(("text", "words"), UNUSABLE)
def test_documents_that_cannot_be_used_stop(text, words, outcome):
    """A document without usable parts stops the run and says why."""
    with pytest.raises(SourceError, match=words):
        outcome({"a.json": text}, "a.jpg", document="a.json")


def test_another_task_is_refused(outcome):
    """The refusal proposes the task that boxes have."""
    found = refusal(outcome, {"a.json": coco(A)}, "a.jpg", task="image_classification")
    assert found.options == {"task": "object_detection"}


def label(image_id, category):
    """Return an item of annotations that has only a category, as those of iNaturalist."""
    return {"image_id": image_id, "category_id": category}


# the annotations of images 1 and 2, the task, the labels of a.jpg
LABELS = [
    ([label(1, 2), label(2, 90)], "image_classification", ["cat"]),
    ([label(1, 2), label(1, 18), label(2, 90)], "image_multi_label", ["cat", "dog"]),
]


@pytest.mark.parametrize(("annotations", "task", "expected"), LABELS)
def test_annotations_without_shapes_are_labels(annotations, task, expected, outcome):
    """They are those of whole images. Their number decides the task; boxes stop with it."""
    text = coco(A, B, boxes=annotations)
    found = outcome({"a.json": text}, "a.jpg", "b.jpg")
    assert (found.options.task, found.images["a.jpg"]) == (task, expected)
    assert found.classes == ("cat", "dog", "owl")
    assert refusal(outcome, {"a.json": text}, task="object_detection").options == {"task": task}


def test_an_annotation_without_a_box_beside_boxes_is_no_label(outcome):
    """One shape makes a document one of boxes; documents of both kinds stop, and name the first."""
    polygons = [{**label(at, 2), "tags": []} for at in (1, 2)]
    assert not outcome({"a.json": coco(A, B, boxes=polygons)}, *AB).rejected
    polygons = [{**label(at, 2), "poly": [4, 5, 8, 5, 8, 9]} for at in (1, 2)]
    assert {*outcome({"a.json": coco(A, B, boxes=polygons)}, *AB).rejected} == {*AB}
    found = outcome({"a.json": coco(A, B, boxes=[label(1, 2), box(2, 2, 0, 0, 40, 20)])}, *AB)
    assert (found.rejected, [*found.images]) == ({"a.jpg": "bad_annotation"}, ["b.jpg"])
    refused = refusal(outcome, {"b.json": coco(B, boxes=[label(2, 90)])})
    assert [row.uri for row in Reading(refused.source, **refused.options).rows] == ["b.jpg"]


def test_the_folder_of_coco_2017(tmp_path, outcome):
    """Captions, keypoints and a list of images lie beside the instances."""
    others = json.dumps({"images": [B], "categories": CATEGORIES})
    files = {"captions_train2017.json": CAPTIONS, "image_info_test2017.json": others}
    files["stuff_train2017.json"] = coco(A, boxes=[WHOLE], categories=[{"id": 2, "name": "sky"}])
    files = {f"annotations/{name}": text for name, text in files.items()}
    for name in ("instances", "person_keypoints"):
        files[f"annotations/{name}_train2017.json"] = coco(A, B, boxes=[WHOLE])
    owl = coco(image(1, "c.jpg"), boxes=[box(1, 90, 10, 10, 20, 10)], info={"year": 2017})
    files["annotations/instances_val2017.json"] = owl
    names = "train2017/a.jpg", "train2017/b.jpg", "val2017/c.jpg"
    found = outcome(files, *names)
    labels = [("cat", [0, 0, 1, 1])], [], [("owl", [0.25, 0.5, 0.75, 1])]
    assert found.images == dict(zip(names, labels, strict=True))
    assert found.splits == dict(zip(names, ("train", "train", "eval"), strict=True))
    assert found.classes == ("cat", "dog", "owl")
    with pytest.raises(SourceError, match=str(tmp_path / "in/annotations")):
        outcome({}, document="annotations/instances_train2017.json")


def test_a_document_on_a_web_server(tmp_path):
    """A web server lists no files, so paths in the document cannot be found."""
    write_files(tmp_path, {"a.json": coco(A)})

    async def answer(request):
        return web.FileResponse(tmp_path / request.path[1:])

    with serving(answer) as server, pytest.raises(SourceError, match="bucket"):
        recordgen.plan(f"{server}/a.json")


@pytest.mark.parametrize(("one", "other"), [("1", 1), (1, "1"), (1.0, 1), (7, 7.0)])
def test_ids_of_any_type(one, other, outcome):
    """pandas writes 7.0, and other programs "7": the boxes must not get lost."""
    boxes, categories = [box(other, other, 0, 0, 40, 20)], [{"id": one, "name": "cat"}]
    document = coco(image(one, "a.jpg"), boxes=boxes, categories=categories)
    assert outcome({"a.json": document}, "a.jpg").images == {"a.jpg": [("cat", [0, 0, 1, 1])]}


@pytest.mark.parametrize("number", [1, None])
def test_images_that_share_an_id_are_rejected(number, outcome):
    """The boxes of one would be stored for both."""
    images = [image(number, "a.jpg"), image(number, "b.jpg"), image(3, "c.jpg")]
    boxes = [box(number, 2, 0, 0, 40, 20), box(3, 2, 0, 0, 40, 20)]
    found = outcome({"a.json": coco(*images, boxes=boxes)}, "a.jpg", "b.jpg", "c.jpg")
    assert [*found.rejected] == ["a.jpg", "b.jpg"]
    assert [*found.images] == ["c.jpg"]


def runs(size, counts):
    """Return what makes an object a crowd with a mask."""
    return {"iscrowd": 1, "segmentation": {"size": size, "counts": counts}}


# of the one object of an image of 40×20 pixels
BOMBS = [
    runs([60_000, 60_000], [5, 3_600_000_000 - 5]),  # no picture's size
    runs([40, 20], [5, 795]),  # that of another picture
    runs([20, 40], [0] * 1_000_001 + [800]),
    {"keypoints": [1, 1, 2] * 1001},
    {"category_id": 3},  # a name of 1,001 letters
]


@pytest.mark.parametrize("more", BOMBS)
def test_shapes_beyond_a_limit_reject_their_image(more, outcome):
    """A mask has the size of its image, and runs and keypoints have limits; others are read."""
    boxes = [box(1, 2, 4, 5, 4, 5) | more, box(2, 2, 0, 0, 40, 20, keypoints=[1, 1, 2])]
    categories = [*CATEGORIES, {"id": 3, "name": "x" * 1001}]
    document = {"a.json": coco(A, B, boxes=boxes, categories=categories)}
    found = outcome(document, "a.jpg", "b.jpg")
    assert found.rejected == {"a.jpg": "bad_annotation"}
    assert found.images == {"b.jpg": [("cat", [0, 0, 1, 1])]}
    assert len(found.details["b.jpg"][0].keypoints) == 3


def test_a_category_with_too_many_keypoints(outcome):
    """Objects are not padded to its names: images with keypoints are rejected, others are read."""
    categories = [{"id": 2, "name": "cat", "keypoints": ["k"] * 1001}]
    boxes = [box(1, 2, 4, 5, 4, 5, keypoints=[1, 1, 2]), WHOLE | {"image_id": 2}]
    found = outcome({"a.json": coco(A, B, boxes=boxes, categories=categories)}, "a.jpg", "b.jpg")
    assert found.rejected == {"a.jpg": "bad_annotation"}
    assert [*found.images] == ["b.jpg"]
    assert not found.keypoints


def test_keypoints_of_many_objects(outcome):
    """An image has as many keypoints of each object as of the one with most: both have a limit."""
    categories = [{"id": 2, "name": "cat", "keypoints": ["k"] * 1000}]
    boxes = [box(1, 2, 0, 0, 1 + at / 20, 10) for at in range(501)]
    boxes[0]["keypoints"] = [1, 1, 2]
    for count, codes in ((500, []), (501, ["bad_annotation"])):
        document = {"a.json": coco(A, boxes=boxes[:count], categories=categories)}
        assert outcome(document, "a.jpg").codes == codes
