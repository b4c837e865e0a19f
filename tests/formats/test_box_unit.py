"""Boxes in pixels, as in the CSV of TensorFlow's Object Detection API, become shares."""

from collections import Counter

import pandas as pd
import pytest
from PIL import Image

import recordgen
from recordgen.cli import main
from recordgen.core.task.annotation import AnnotationError
from recordgen.rejects import Finding
from recordgen.tables.roles import BOX_ROLES
from recordgen.tasks import ObjectDetection
from recordgen.tasks.object_detection.annotation import Box, Boxes
from recordgen.tasks.object_detection.stored_boxes import turned
from tests.conftest import encoded, exif_of
from tests.formats.boxes import boxes_of
from tests.formats.sources import Outcome, Reading


def picture(orientation):
    """Return a PNG of 40×20 pixels with an Exif orientation."""
    return encoded(Image.new("RGB", (40, 20), "gray"), "PNG", exif=exif_of(orientation))


HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax"
A = "a.jpg,200,100,cat,20,20,100,60"
BOX, PIXELS = (0.1, 0.2, 0.5, 0.6), {"files_in_pixels": 1}
REJECTED = "bad_annotation"
EDITED = {"boxes_clipped": 1, "boxes_swapped": 1}
PIXEL_ROWS = [
    # lines below that header; for each the box, or the code of its reject; counts
    ([A], [BOX], PIXELS),
    (["a.jpg,200.0,100,cat,20.0,20,1e2,60"], [BOX], PIXELS),
    ([A, "b.jpg,100,200,cat,10,40,50,120"], [BOX] * 2, PIXELS),  # each row has its own size
    (["a.jpg,200,100,cat,.1,.2,.5,.6", "b.jpg,9,9,cat,0,0,1,1"], [BOX, (0, 0, 1, 1)], {}),
    (["a.jpg,,,cat,.1,.2,.5,.6"], [BOX], {}),
    (["a.jpg,200,100,,,,,"], [None], {}),
    # a pixel wide in a file of pixels; over the edge and inverted, see --bad-boxes
    ([A, "b.jpg,2,4,cat,0,0,1,1"], [BOX, (0, 0, 0.5, 0.25)], PIXELS),
    ([A, "b.jpg,200,100,cat,100,-20,20,60"], [BOX, (0.1, 0, 0.5, 0.6)], {**PIXELS, **EDITED}),
    (["a.jpg,200,100,cat,20,20,20,60"], [None], {"boxes_dropped": 1, **PIXELS}),
    # nothing is guessed
    ([A, "b.jpg,200,100,cat,.1,.2,.5,.6"], [BOX, REJECTED], PIXELS),
    (["b.jpg,200,100,cat,.1,.2,.5,.6", A], [BOX, REJECTED], {}),
    ([A, "b.jpg,,,cat,.1,.2,.5,.6"], [BOX, REJECTED], PIXELS),
    (["a.jpg,200,100,cat,.1,.2,1.5,.6"], [REJECTED], {}),
    (["a.jpg,,,cat,.1,.2,.5,.6", "b.jpg,,,cat,.1,.2,.3,5"], [BOX, REJECTED], {}),
    (["b.jpg,20,10,cat,20,20,100,60", A], [REJECTED, BOX], PIXELS),
    # the first clear box decides, also about the rows before it
    (["b.jpg,2,4,cat,0,0,1,1", A], [(0, 0, 0.5, 0.25), BOX], PIXELS),
    (["b.jpg,9,9,cat,0,0,1,1", "a.jpg,200,100,cat,.1,.2,.5,.6"], [(0, 0, 1, 1), BOX], {}),
    (["a.jpg,200,100,cat,20,20,100,"], [REJECTED], {}),
]


@pytest.mark.parametrize(("lines", "expected", "counted"), PIXEL_ROWS)
def test_boxes_in_pixels(lines, expected, counted, tmp_path):
    """With width and height, pixels become shares; a file has one unit, and others are rejected."""
    (tmp_path / "a.csv").write_text("\n".join((HEADER, *lines)))
    frame = pd.read_csv(tmp_path / "a.csv")
    found, of_frame = (
        Reading(source, task="object_detection") for source in (tmp_path / "a.csv", frame)
    )
    items = [item for item in found.items if not isinstance(item, Finding)]
    for item, wanted in zip(items, expected, strict=True):
        if isinstance(wanted, str):
            assert item.code == wanted
        else:
            boxes = [*Boxes.from_json(item.annotation).boxes]
            assert boxes == ([] if wanted is None else [pytest.approx(Box("cat", *wanted))])
    assert Counter(item.code for item in found.items if isinstance(item, Finding)) == counted
    assert [(row.line, row.annotation) for row in of_frame.rows] == [
        (row.line - 1, row.annotation) for row in found.rows
    ]


SIZES = [
    # Exif's orientation, width and height in the row, option, words of the refusal
    (1, "40,20", "stored", ""),
    (1, "400,200", "stored", ""),  # drawn on a larger copy
    (1, "20,40", "stored", "the row says that the image has 20×40 pixels, but it has 40×20; corr"),
    (1, "40,30", "stored", "has 40×30 pixels, but it has 40×20"),
    (6, "40,20", "stored", ""),
    (6, "20,40", "upright", ""),
    (6, "20,40", "stored", "--box-orientation upright"),
    (6, "40,20", "upright", "--box-orientation stored"),
    *((6, ",", option, "") for option in ("stored", "upright")),  # shares of any picture
]


@pytest.mark.parametrize(("orientation", "size", "option", "words"), SIZES)
def test_a_row_that_is_wrong_about_its_image(orientation, size, option, words, tmp_path):
    """The image is compared with its row, because boxes of another picture would be wrong."""
    (tmp_path / "a.png").write_bytes(picture(orientation))
    width, height = (int(side or 1) for side in size.split(","))
    corners = f"{width / 10:g},{height / 10:g},{width * 0.4:g},{height * 0.3:g}"
    (tmp_path / "a.csv").write_text(f"{HEADER}\na.png,{size},red,{corners}\n")
    rejects = recordgen.check(tmp_path / "a.csv", box_orientation=option).rejects
    assert [item.code for item in rejects] == ["bad_annotation"] * bool(words)
    assert all(words in item.message for item in rejects)
    if words:
        return
    recordgen.convert(tmp_path / "a.csv", tmp_path / "out", box_orientation=option)
    assert main(["check", str(tmp_path / "out")]) == 0  # records have the digests of their rows
    [(_, [(*_, found)])] = boxes_of(tmp_path / "out").values()
    way = orientation if option == "stored" else 1
    assert found == pytest.approx(turned(Box("red", 0.1, 0.1, 0.4, 0.3), way)[1:])


def test_rows_of_one_image_agree_on_its_size(tmp_path):
    """Boxes of rows with the same size are merged; a row with another size is a contradiction."""
    lines = [A, A.replace("cat", "dog"), "a.jpg,100,100,cat,1,1,9,9"]
    (tmp_path / "a.csv").write_text("\n".join((HEADER, *lines)))
    task, said = ObjectDetection(), [row.annotation for row in Reading(tmp_path / "a.csv").rows]
    merged = Boxes.from_json(task.merge(said[:2]).annotation)
    assert (merged.size, [box.label for box in merged.boxes]) == ((200, 100), ["cat", "dog"])
    with pytest.raises(AnnotationError, match="100×100, 200×100"):
        task.merge(said)


NAMED = "Frame,Label,xmin,ymin,xmax,ymax\n"
# b.png's box alone may also be in shares; both pictures have 40×20 pixels
FRAME = pd.DataFrame(
    [("b.png", "cat", 0, 1, 1, 2), ("a.png", "cat", 4, 5, 8, 10)],
    columns=["image", "label", *BOX_ROLES],
)
# a row of FRAME as an object of AutoML
ITEM = (
    '{"imageGcsUri": "%s", "boundingBoxAnnotations": '
    '[{"displayName": "%s", "xMin": %s, "yMin": %s, "xMax": %s, "yMax": %s}]}\n'
)

# files with the rows of FRAME
WITHOUT_SIZE = {
    "a.csv": FRAME.to_csv(index=False),
    "automl.csv": "TRAIN,b.png,cat,0,1,,,1,2,,\nTRAIN,a.png,cat,4,5,,,8,10,,\n",
    "a.jsonl": "".join(ITEM % tuple(row) for row in FRAME.to_numpy()),
    "keys.jsonl": FRAME.to_json(orient="records", lines=True),
    "a.parquet": FRAME.to_parquet(),
}
NAMES = {"columns": "path=Frame"}


@pytest.mark.parametrize("name", [*WITHOUT_SIZE, "frame"])
def test_pixels_without_a_size_are_those_of_the_image(name, outcome, tmp_path, make_pictures):
    """The first box that can only be in pixels decides for all; headers of images say sizes."""
    columns = ",".join(f"{name}={name}" for name in FRAME.columns)
    options = {"columns": columns} if name == "keys.jsonl" else {}
    if name == "frame":
        make_pictures("a.png", "b.png")
        folder = f"{tmp_path}/in/"
        found = Outcome(FRAME.assign(image=folder + FRAME["image"]))
    else:
        folder = ""
        found = outcome({name: WITHOUT_SIZE[name]}, "a.png", "b.png", document=name, **options)
    assert found.images == {
        f"{folder}b.png": [("cat", [0, 0.05, 0.025, 0.1])],
        f"{folder}a.png": [("cat", [0.1, 0.25, 0.2, 0.5])],
    }
    assert found.adjusted == {"files_in_pixels": 1}


# line, code
UNREADABLE = [
    ("b.png,cat,4,5,8,10", "missing_file"),
    ("c.png,cat,4,5,8,10", "not_an_image"),
    ("sftp://host/a.png,cat,4,5,8,10", "not_allowed"),
    ("a.png,cat,4,5,800,10", "bad_annotation"),  # far outside
    ("a.png,cat,.1,.2,.3,.5", "bad_annotation"),  # shares below pixels
]


@pytest.mark.parametrize(("line", "code"), UNREADABLE)
def test_pixels_without_a_readable_image_reject_their_row(line, code, outcome):
    """No box is guessed, and other rows stay."""
    text = f"{NAMED}a.png,cat,4,5,8,10\na.png,cat,4,5,9,10\n{line}\n"
    found = outcome({"a.csv": text, "c.png": "text"}, "a.png", document="a.csv", **NAMES)
    assert (found.codes, len(found.rows)) == ([code], 2)


@pytest.mark.parametrize(("orientation", "option"), [(6, "stored"), (6, "upright"), (3, "upright")])
def test_pixels_are_those_of_the_stored_or_the_upright_picture(orientation, option, outcome):
    """Exif's turns swap the sides of the upright picture."""
    files = {"a.csv": f"{NAMED}a.png,cat,2,5,8,10\n", "a.png": picture(orientation)}
    found = outcome(files, document="a.csv", box_orientation=option, **NAMES)
    width, height = (20, 40) if (orientation, option) == (6, "upright") else (40, 20)
    expected = [round(side, 4) for side in (2 / width, 5 / height, 8 / width, 10 / height)]
    assert found.images == {"a.png": [("cat", expected)]}
