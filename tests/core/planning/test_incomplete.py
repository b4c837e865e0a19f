# ruff: noqa: E501 - tables with a case on each line
"""An example whose rows add up is complete, or none: by rows in other splits, and by bad rows."""

import json
from pathlib import Path

import pytest
from PIL import Image

import recordgen
from recordgen.core.planning.decide import lost_by_bucket, with_doubt
from recordgen.core.rows.row import placing
from recordgen.rejects import Reject
from recordgen.tasks import ImageClassification, ObjectDetection
from tests.planned import bucket_of

BOXES = [{"displayName": "cat", "xMin": 0.1, "yMin": 0.1, "xMax": 0.2, "yMax": 0.2}]
LOST, WRONG, BOXED = "incomplete", "bad_annotation", "object_detection"
GOOD, BAD = ".1,.1,,,.2,.2,,", ".1,.1,,,.2,six,,"


def checked(folder, name, lines, task):
    for image in "abc":
        Image.new("RGB", (20, 20), (ord(image), 0, 90)).save(folder / f"{image}.png")
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    (folder / name).write_bytes(data)
    return recordgen.check(folder / name, task=task, split="100")


def span(start, end, text="Anna flew"):
    item = {"startOffset": start, "endOffset": end, "displayName": "x"}
    return json.dumps({"textContent": text, "textSegmentAnnotations": [item]})


def boxes_of(uri):
    return json.dumps({"imageGcsUri": uri, "boundingBoxAnnotations": BOXES})


# task, lines, the lines that are rejected by their code; one example is left
BAD_ROWS = [
    (BOXED, [f"a.png,cat,{GOOD}", f"a.png,dog,{BAD}", f"./a.png,dog,{GOOD}", f"b.png,dog,{GOOD}"], {1: LOST, 2: WRONG, 3: LOST}),
    (BOXED, [f"TRAIN,a.png,cat,{GOOD}", f"TRIAN,a.png,cat,{GOOD}", "TEST,b.png,,,,,,,,,"], {1: LOST, 2: "unknown_ml_use"}),
    ("image_multi_label", ["a.png,x", "./a.png,y,nan", "b.png,x,y"], {1: LOST, 2: WRONG}),
    ("text_multi_label", ["text,label_1,label_2", "hello,x,", "hello,y,nan", "hi,x,y"], {2: LOST, 3: WRONG}),
    ("text_entities", [span(0, 4), span(5, "nine")], {2: WRONG}),
    (BOXED, [f"a.png,caf\udce9,{GOOD}".replace(".2", "1.2"), f"./a.png,cat,{GOOD}", f"b.png,dog,{GOOD}"], {1: "bad_encoding", 2: LOST}),
    (
        BOXED,
        [
            *("label,filename,xmin,ymin,xmax,ymax", "cat,a.png,.1,.1,.2,.2"),
            *("c\0t,a.png,.1,.1,.2,.2", 'dog,b.png,.1,"1,.2,.2'),
            *("dog,b.png,.1,.1,.2,.2", "dog,c.png,.1,.1,.2,.2"),
        ],
        {2: LOST, 3: "bad_line", 4: "bad_line", 5: LOST},
    ),
    (BOXED, [boxes_of("a.png"), boxes_of("./a.png")[:-20], boxes_of("b.png")], {1: LOST, 2: "bad_line"}),
    ("text_multi_label", ["text,label", "hello,x", "hello,caf\udce9", "hi,y"], {2: LOST, 3: "bad_encoding"}),
    # A second label or segment would not belong to the same example.
    ("image_classification", ["TRAIN,a.png,x", "TRIAN,a.png,x"], {2: "unknown_ml_use"}),
]  # fmt: skip


@pytest.mark.parametrize(("task", "lines", "codes"), BAD_ROWS)
def test_a_bad_row_rejects_its_whole_example(task, lines, codes, tmp_path):
    """The rejects of the other rows name the bad one."""
    name = "a.jsonl" if lines[0].startswith("{") else "a.csv"
    found = checked(tmp_path, name, lines, task)
    assert {item.line: item.code for item in found.rejects} == codes
    assert found.dataset.examples == 1
    assert not found.findings
    bad = [f"{tmp_path}/{name}:{line}," for line, code in codes.items() if code != LOST]
    for item in found.rejects:
        assert any(place in item.message for place in bad) == (item.code == LOST)


# name, lines
UNKNOWN_IMAGES = [
    ("a.csv", [f"a\udce9.png,cat,{GOOD}", f"b.png,cat,{GOOD}"]),
    ("a.jsonl", [json.dumps({"boundingBoxAnnotations": BOXES}), '{"imageGcsUri": "b.png"}']),
    ("a.jsonl", ['{"imageGcsUri": "a.p', '{"imageGcsUri": "b.png"}']),
]


@pytest.mark.parametrize(("name", "lines"), UNKNOWN_IMAGES)
def test_a_bad_row_of_an_unknown_image_says_so(name, lines, tmp_path):
    """Where the path of a bad row is unreadable, its reject warns about other rows of the image."""
    found = checked(tmp_path, name, lines, BOXED)
    [item] = found.rejects
    assert (item.line, item.uri) == (1, "")
    assert "unknown" in item.message
    assert found.dataset.examples == 1


def test_the_same_name_in_another_folder_is_another_image(tmp_path):
    """A bad row rejects rows of its own folder's image alone."""
    good, bad = f"a.png,cat,{GOOD}", f"a.png,cat,{BAD}"
    for folder, lines in (("one", [bad, good]), ("two", [good])):
        (tmp_path / folder).mkdir()
        checked(tmp_path / folder, "l.csv", lines, BOXED)
    sources = [tmp_path / folder / "l.csv" for folder in ("one", "two")]
    found = recordgen.check(sources, task=BOXED)
    assert [Path(item.source).parent.name for item in found.rejects] == ["one", "one"]
    assert found.dataset.examples == 1


def test_only_tasks_whose_rows_add_up_lose_examples():
    """A rejected row of boxes costs its image; one of a label only itself."""
    rejects = [Reject("a.csv", 1, uri, "bad_annotation", "") for uri in ("a.jpg", "", "sha256://")]
    assert not lost_by_bucket(rejects, ImageClassification(), 0, 1)
    assert lost_by_bucket(rejects[:2], ObjectDetection(), 0, 1) == {0: rejects[:1]}
    for item in rejects:
        assert with_doubt(item, ImageClassification()) is item
        assert (with_doubt(item, ObjectDetection()) is item) == (item.uri != "")


def test_a_reject_goes_to_the_bucket_of_the_other_rows():
    """A reject goes to the bucket of its image, however its uri is spelled."""
    place, uris = placing(3), [f"{n}.jpg" for n in range(20)]
    # No row has the first uri; the other spellings have the rows' place.
    rejects = [Reject("a.csv", 1, uri, "", "") for uri in ("x\ny", *(f"./{uri}" for uri in uris))]
    found = lost_by_bucket(rejects, ObjectDetection(), 3, 4)
    assert {item.uri: bucket for bucket, items in found.items() for item in items} == {
        uri: bucket_of(place(uri).sort_key, 4) for uri in uris
    }
