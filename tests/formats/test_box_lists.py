# ruff: noqa: E501 - a table with a case on each line
"""Boxes in one column, as lists of four numbers."""

import numpy as np
import pandas as pd
import pytest

import recordgen
from recordgen.errors import UsageError
from tests.formats.sources import Outcome, write_files

CORNERS = [0.25, 0.25, 0.5, 0.75]
BOTH = "image,label,width,height,bbox\na.jpg,cat,40,20,{}\n"

# what decides, file, options, reading of the column
READ = [
    ("shares", 'image,label,bbox\na.jpg,cat,"[.25, .5, .5, .25]"\n', "xywh=bbox,path=image", "xywh", [0.25, 0.5, 0.75, 0.75]),
    ("option: corners", BOTH.format('"[10, 5, 20, 15]"'), "xyxy=bbox", "xyxy", CORNERS),
    ("option: sides", BOTH.format("10 5 10 10"), "xywh=5", "xywh", CORNERS),
    ("option: parentheses", BOTH.format('"(10, 5, 10, 10)"'), "xywh=bbox", "xywh", CORNERS),
    ("no object", BOTH.format('"[20, 5, 30, 15]"') + "b.jpg,,40,20,\n", "xyxy=bbox", "xyxy", [0.5, 0.25, 0.75, 0.75]),
    ("option: center", BOTH.format("15 10 10 10"), "center_xywh=5", "center_xywh", CORNERS),
    ("another name", BOTH.replace("bbox", "where").format('"[10, 5, 10, 10]"'), "xywh=where", "xywh", CORNERS),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "columns", "form", "corners"), [each[1:] for each in READ], ids=[e[0] for e in READ]
)
def test_boxes(text, columns, form, corners, tmp_path):
    """The option says how the numbers are read, and the preview names that reading."""
    found = Outcome(str(write_files(tmp_path, {"a.csv": text}) / "a.csv"), columns=columns)
    assert found.images["a.jpg"] == [("cat", corners)]
    assert form in dict(found.detection.columns).values()
    assert not found.rejects


# file, options, what the message has
STOPS = [
    (BOTH.format('"[10, 5, 20, 15]"'), "", "xywh=bbox"),
    (BOTH.replace("label", "source").format('"[20, 5, 30, 15]"'), "", "label=source,xywh=bbox"),
    (BOTH.format("1 2 3 4"), "xywh=bbox,xyxy=bbox", "xyxy, xywh"),
    (BOTH.format("1 2 3 4"), "xywh=box", "bbox"),
    (BOTH.replace("label", "xmin").format("1 2 3 4"), "xywh=bbox", "xmin"),
]


@pytest.mark.parametrize(("text", "columns", "words"), STOPS)
def test_an_unclear_column_stops_the_run(text, columns, words, tmp_path):
    with pytest.raises(UsageError, match=words):
        Outcome(str(write_files(tmp_path, {"a.csv": text}) / "a.csv"), columns=columns)


@pytest.mark.parametrize(
    "text", ["1 2 3", "[1, , 2, 3, 4]", "[1, 2, 3, x]", "[1, 2, 3, nan]", "1 2 3 4 5"]
)
def test_other_lists_reject_their_image(text, tmp_path):
    path = write_files(tmp_path, {"a.csv": BOTH.format(f'"{text}"')}) / "a.csv"
    assert Outcome(str(path), columns="xywh=bbox").rejected == {"a.jpg": "bad_annotation"}


def test_kaggles_table_converts(tmp_path, make_pictures):
    """One label for all boxes, lists of boxes, and names without suffix in another folder."""
    make_pictures("train/b6ab.jpg", "train/c7.jpg")
    rows = 'b6ab,40,20,"[30.0, 5.0, 4.0, 5.0]",usask_1\nc7,40,20,"[0, 0, 10, 10]",usask_1\n'
    text = f"image_id,width,height,bbox,source\n{rows}"
    path = write_files(tmp_path / "in", {"train.csv": text}) / "train.csv"
    options = {
        "columns": "path=image_id,xywh=bbox,label='wheat head'",
        "image_root": str(tmp_path / "in/train"),
    }
    result = recordgen.convert(str(path), str(tmp_path / "out"), **options)
    assert not result.dataset.rows.rejected
    found = {each["image/source_id"]: each for each in recordgen.source(tmp_path / "out", "train")}
    assert {name.rpartition("/")[2] for name in found} == {"b6ab.jpg", "c7.jpg"}
    boxes = sorted(each["image/object/bbox/xmax"].tolist() for each in found.values())
    assert boxes == [[0.25], [pytest.approx(0.85)]]
    labels = {text for each in found.values() for text in each["image/object/class/text"]}
    assert labels == {"wheat head"}


@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("columns", [{"xywh": "bbox"}, {"xywh": "bbox", "label": "'cat'"}])
def test_a_frame_with_lists(columns, kind, tmp_path, make_pictures):
    """Print options of NumPy round no box."""
    make_pictures("a.jpg", "b.jpg")
    names = [str(tmp_path / "in" / name) for name in ("a.jpg", "b.jpg")]
    boxes = [*map(kind, [[0.25, 0.5, 0.5, 0.25], [0.5, 0.25, 0.25, 0.5]])]
    frame = pd.DataFrame({"image": names, "label": "cat", "split": "train", "bbox": boxes})
    with np.printoptions(precision=1):
        recordgen.convert(frame, str(tmp_path / "out"), columns=columns)
    records = recordgen.source(tmp_path / "out", "train")
    assert [each["image/object/bbox/xmax"].tolist() for each in records] == [[0.75], [0.75]]
