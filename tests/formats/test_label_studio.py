"""Label Studio's JSON: percent, rotation, several annotators, addresses, and what has no box."""

import json

import pytest

SIZE = {"original_width": 40, "original_height": 20}


def region(kind="rectanglelabels", labels=("cat",), *, more=None, **value):
    """Return one result; a rectangle of (4, 5, 8, 10) in 40 × 20 pixels unless it is given."""
    value = value or {"x": 10, "y": 25, "width": 10, "height": 25, "rotation": 0}
    return {"type": kind, "value": {**value, kind: list(labels)}, **SIZE, **(more or {})}


def choices(*names, question="kind", **value):
    """Return the answer to a question."""
    found = {**value, "choices": list(names)}
    return {"type": "choices", "from_name": question, "value": found}


def task(*annotations, image="a.png", **more):
    """Return a task; an annotation is a list of results, or a whole one."""
    whole = [each if isinstance(each, dict) else {"result": each} for each in annotations]
    return {"data": {"image": image}, "annotations": whole, **more}


def project(*tasks):
    """Return a document of tasks beside b.png, whose box is that of :func:`region`."""
    return {"project.json": json.dumps([*tasks, task([region()], image="b.png")])}


BOX = [0.1, 0.25, 0.2, 0.5]
CAT, DOG = [("cat", BOX)], [("dog", BOX)]
PREDICTION = {"result": [region(labels=["owl"])], "score": 0.9}
HALF = {"id": "r1", "value": {"x": 10, "y": 25, "width": 10, "height": 25}, **SIZE}
HALVES = [
    {"type": "rectangle", **HALF},
    {"type": "labels", **HALF, "value": {**HALF["value"], "labels": ["dog"]}},
]
POLYGON = {"points": [[10, 25], [20, 25], [15, 50]]}
ELLIPSE = {"x": 15, "y": 37.5, "radiusX": 5, "radiusY": 12.5, "rotation": 0}
TURNED = {"x": 10, "y": 25, "width": 10, "height": 25, "rotation": 90}
ROTATED = {"boxes_rotated": 1, "boxes_clipped": 1}
REGION_OF_DOG = region(labels=["dog"])
TRUTH = {"result": [REGION_OF_DOG], "ground_truth": True}
CANCELLED = {"result": [REGION_OF_DOG], "was_cancelled": True}
KEYPOINT = region("keypointlabels", x=1, y=2)

# name: the task, its boxes, the changes that are counted
READ = {
    "percent": (task([region()]), CAT, {}),
    "no size": (task([region(more=dict.fromkeys(SIZE))]), CAT, {}),
    "polygon": (task([region("polygonlabels", **POLYGON)]), CAT, {}),
    "ellipse": (task([region("ellipselabels", **ELLIPSE)]), CAT, {}),
    # 4 × 5 pixels, turned to the left around their upper left corner
    "rotation": (task([region(**TURNED)]), [("cat", [0.0, 0.25, 0.1, 0.45])], ROTATED),
    "region and label": (task(HALVES), DOG, {}),
    "two labels": (task([region(labels=["cat", "dog"])]), CAT + DOG, {}),
    "nothing in it": (task([]), [], {}),
    "same": (task([region()], [region()]), CAT, {}),
    "differ": (task([region()], [REGION_OF_DOG]), CAT, {"annotators_differ": 1}),
    "ground truth": (task([region()], TRUTH), DOG, {"annotators_differ": 1}),
    "was_cancelled": (task(CANCELLED, [region()]), CAT, {}),
    "predictions": (task([region()], predictions=[PREDICTION]), CAT, {}),
    "keypoints": (task([region(), KEYPOINT]), CAT, {"shapes_dropped": 1}),
    "choice of a region": (task([region(), choices("small", x=10)]), CAT, {}),
    "old key": ({"data": {"img": "a.png"}, "completions": [{"result": [region()]}]}, CAT, {}),
}


@pytest.mark.parametrize(("document", "boxes", "adjusted"), READ.values(), ids=READ)
def test_boxes(document, boxes, adjusted, outcome):
    """Answers of an annotator become boxes."""
    found = outcome(project(document), "a.png", "b.png")
    assert (found.task, found.rejects) == ("object_detection", [])
    assert found.images == {"a.png": boxes, "b.png": CAT}
    assert found.adjusted == adjusted


# the address of an image, where it is
ADDRESSES = [
    ("/data/upload/1/ab12cd34-a.png", "a.png"),
    ("/data/upload/1/ab12cd34-a.png", "upload/1/ab12cd34-a.png"),
    ("/data/upload/1/ab12cd34-a%20b.png", "images/a b.png"),
    ("/data/local-files/?d=photos/x/a%20b.png", "x/a b.png"),
    ("http://localhost:8080/data/upload/1/ab12cd34-a.png", "a.png"),
    ("photos\\a.png", "photos/a.png"),
    ("gs://bucket/a b.png", "gs://bucket/a b.png"),
]


@pytest.mark.parametrize(("address", "place"), ADDRESSES)
def test_addresses(address, place, outcome):
    """Each form of an image's address leads to its file; one in a bucket stays."""
    images = [name for name in (place, "b.png") if "://" not in name]
    found = outcome(project(task([region()], image=address)), *images)
    assert found.images == {place: CAT, "b.png": CAT}


# the task, code of the reject
REJECTED = [
    (task([region(labels=[])]), "bad_annotation"),
    (task([region(labels=[f"{at}" for at in range(31)])]), "bad_annotation"),
    (task([region(x=1, y=2, width=None, height=3)]), "bad_annotation"),
    (task([region("polygonlabels", points=[[1, 2], [3, "x"]])]), "bad_annotation"),
    (task([region(**TURNED, more=dict.fromkeys(SIZE))]), "bad_annotation"),
    (task([region(more={"image_rotation": 90})]), "bad_annotation"),
    (task([region(), region("brushlabels", format="rle", rle=[0, 1])]), "bad_annotation"),
    (task([region()], image="/data/upload/1/ab12cd34-x.png"), "missing_file"),
    (task([region()], image="data:image/png;base64,AAAA"), "bad_annotation"),
    ({"data": {"one": "a.png", "two": "b.png"}, "annotations": [{"result": []}]}, "bad_annotation"),
    (task([region()], image="http://[a.png"), "bad_annotation"),
    ({"data": {"image": "a.png"}, "annotations": 5}, "bad_annotation"),
    (task([region(), {"type": "choices", "value": {"choices": 5}}]), "bad_annotation"),
    (task([5]), "bad_annotation"),
    (task([choices("cat"), choices("sharp", question="quality")]), "bad_annotation"),
]


@pytest.mark.parametrize(("document", "code"), REJECTED)
def test_what_cannot_be_used_rejects_its_image(document, code, outcome):
    """A region that cannot be read, or has more labels than anybody gives, costs its image."""
    found = outcome(project(document), "a.png", "b.png")
    assert found.codes == [code]
    assert [*found.images] == ["b.png"]


def test_tasks_without_annotations_are_skipped(outcome):
    """Nobody has looked at them: they are no images without objects."""
    tasks = task(), task({"result": [], "was_cancelled": True}), 7
    found = outcome(project(*tasks), "a.png", "b.png")
    assert [*found.images] == ["b.png"]
    assert len(found.skipped) == 1
    assert "2 tasks" in found.skipped[0]
    assert [item.line for item in found.rejects] == [3]


# the answers for a.png and b.png, the task
CHOICES = [
    ((["cat"], ["dog"]), "image_classification"),
    ((["cat", "dog"], ["dog"]), "image_multi_label"),
]


@pytest.mark.parametrize(("answers", "name"), CHOICES)
def test_choices_are_labels(answers, name, outcome):
    """Choices are labels, and their number decides the task."""
    images = ["train/a.png", "train/b.png"]
    tasks = [
        task([choices(*labels)], image=image[6:])
        for image, labels in zip(images, answers, strict=True)
    ]
    found = outcome({"train/p.json": json.dumps(tasks)}, *images)
    assert found.task == name
    assert found.images == dict(zip(images, answers, strict=True))
    assert set(found.splits.values()) == {"train"}
