"""Images in Parquet and TFRecords: ``--columns`` names their columns or features, alike."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from recordgen.errors import UsageError
from tests.conftest import encoded
from tests.formats.boxes import boxes_of
from tests.formats.containers import converted, image
from tests.formats.sources import Reading, refusal
from tests.formats.test_tfrecord import framed

MASK = encoded(Image.fromarray(np.arange(12 * 16).reshape(12, 16).astype("uint8") % 3), "PNG")


def write(folder, kind, records):
    """Write the records of two images, with more columns, and return the path."""
    records = [{"pixels": image(at), **record} for at, record in enumerate(records)]
    path = folder / f"a.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(records), path)
    else:
        rows = [{key: _stored(value) for key, value in record.items()} for record in records]
        path.write_bytes(framed(*rows))
    return path


def _stored(value):
    """Return a value as an example has it: lists are flat, and texts are bytes."""
    if isinstance(value, list):
        return [_stored(each) for each in np.ravel(value).tolist()]
    return value.encode() if isinstance(value, str) else value


KINDS = ["parquet", "tfrecord"]

# a record, the option without the image, its split and labels
RECORDS_OF = [
    ({"kind": "cat"}, "label=kind", (None, ["cat"])),
    ({"kind": 7}, "label=kind", (None, ["7"])),
    ({"kind": ["cat", "dog"]}, "label=kind", (None, ["cat", "dog"])),
    ({"a": 1}, "label='wheat'", (None, ["wheat"])),
    ({"cat": 0, "dog": 1}, "label=cat|dog", (None, ["dog"])),
    ({"flags": [1, 0, 1]}, "label=flags[cat|dog|owl]", (None, ["cat", "owl"])),
    ({"kind": "cat", "use": "train"}, "label=kind,split=use", ("train", ["cat"])),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("record", "given", "wanted"), RECORDS_OF)
def test_labels(record, given, wanted, kind, tmp_path):
    """Columns of any names are labels and splits; the others are ignored."""
    source = write(tmp_path, kind, [{**record, "other": "x"}] * 2)
    _, rejects, examples = converted(tmp_path, source=source, columns=f"image=pixels,{given}")
    assert rejects == {}
    splits = {split for split, _ in examples.values()}
    assert wanted[0] is None or splits == {wanted[0]}
    labels = [[*map(bytes.decode, v["image/class/text"])] for _, v in examples.values()]
    assert labels == [wanted[1]] * 2
    assert sorted(v["image/encoded"][0] for _, v in examples.values()) == sorted(map(image, (0, 1)))


# columns of the box 8,12,16,24, the option
BOXES = [
    ({"box": [8, 12, 16, 24]}, "xyxy=box"),
    ({"box": [8, 12, 8, 12]}, "xywh=box"),
    ({"box": [[8, 12, 8, 12]]}, "xywh=box"),
    ({"a": 8, "b": 12, "c": 16, "d": 24}, "xmin=a,ymin=b,xmax=c,ymax=d"),
    ({"a": [8], "b": [12], "c": [16], "d": [24]}, "xmin=a,ymin=b,xmax=c,ymax=d"),
    ({"x": 8, "y": 12, "w": 8, "h": 12}, "xywh=x|y|w|h"),
    ({"x": 8, "y": 12, "w": 16, "h": 24}, "xyxy=x|y|w|h"),
    ({"box": [12, 18, 8, 12]}, "center_xywh=box"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("record", "given"), BOXES)
def test_boxes(record, given, kind, tmp_path):
    """Boxes are a list or four columns, as two corners or a corner and the size."""
    label = ["cat"] if isinstance(next(iter(record.values())), list) else "cat"
    source = write(tmp_path, kind, [{**record, "kind": label, "width": 64, "height": 48}] * 2)
    columns = f"image=pixels,label=kind,{given}"
    _, rejects, _ = converted(tmp_path, source=source, columns=columns)
    assert rejects == {}
    for _, boxes in boxes_of(tmp_path / "out").values():
        assert boxes == [("cat", 0, [0.125, 0.25, 0.25, 0.5])]


def test_masks(tmp_path):
    """A feature of masks is a mask for each image, as a dataset of Recordgen has them."""
    source = write(tmp_path, "tfrecord", [{"m": MASK, "other": 1}] * 2)
    dataset, rejects, examples = converted(tmp_path, source=source, columns="image=pixels,mask=m")
    assert (dataset.task, rejects, len(examples)) == ("image_segmentation", {}, 2)
    masks = {bytes(v["image/segmentation/class/encoded"][0]) for _, v in examples.values()}
    assert len(masks) == 1


# the columns beside the image, the option that is proposed
UNKNOWN = [
    ({"label": "cat", "stars": 7}, "image=pixels,label=label"),
    ({"class": 1, "x": 3.5}, "image=pixels,label=class"),
    ({"label": "cat", "split": "test"}, "image=pixels,split=split,label=label"),
    ({"label": "cat", "x": 7, "bbox": [0.1, 0.2, 0.3, 0.4]}, "image=pixels,label=label,xywh=bbox"),
    ({"label": "cat", "xyxy_box": [0.1, 0.2, 0.3, 0.4]}, "image=pixels,label=label,xyxy=xyxy_box"),
    ({"label": "cat", "box_2d": [100, 200, 300, 400]}, ""),
    ({"label": "cat", "objects/bbox": [0.1, 0.2, 0.3, 0.4]}, ""),
]


@pytest.mark.parametrize("given", [None, "label='wheat'"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("record", "proposed"), UNKNOWN)
def test_unknown_columns_stop(record, proposed, kind, given, tmp_path):
    """Without a known role for each column the run stops, and its advice reads the file.

    What options name stays in the advice.
    """
    source = write(tmp_path, kind, [record] * 2)
    if kind == "parquet":  # a column of bytes is an image by its name
        table = parquet.read_table(source)
        parquet.write_table(table.rename_columns(["image", *table.column_names[1:]]), source)
        proposed = proposed.replace("pixels", "image")
    refused = refusal(Reading, source, columns=given)
    kept = proposed if given is None else re.sub("label=[^,]*", given, proposed)
    assert refused.options == ({"columns": kept} if kept else {})
    assert not kept or len(Reading(source, columns=kept).rows) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["label", "split", "xywh"])
def test_a_missing_column_stops(name, kind, tmp_path):
    """A column that is not there is named, with those that are."""
    source = write(tmp_path, kind, [{"kind": "cat"}] * 2)
    with pytest.raises(UsageError, match=r"'nokind'.* kind"):
        Reading(source, columns=f"image=pixels,{name}=nokind")


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_one_name_are_apart(kind, tmp_path):
    """Images of files in two folders have uris of their own, and the splits of the folders."""
    for split in ("train", "test"):
        (tmp_path / "in" / split).mkdir(parents=True)
        write(tmp_path / "in" / split, kind, [{"kind": "cat", "who": 7}] * 2)
    columns = {"columns": "image=pixels,label=kind", "group_by": "who"}
    _, rejects, examples = converted(tmp_path, source=f"{tmp_path}/in/", **columns)
    assert rejects == {}
    assert {uri: split for uri, (split, _) in examples.items()} == {
        f"{split}/a.{kind}/{n}": split for split in ("train", "test") for n in (0, 1)
    }


# a file, its records, the option that is proposed, the rows that it reads
ADVICE = [
    ("parquet", {"target": "cat"}, "path=pixels,label=target"),
    ("tfrecord", {"text": "It is good", "label": "cat", "pixels": "x"}, "text=text,label=label"),
]


@pytest.mark.parametrize(("kind", "record", "proposed"), ADVICE)
def test_advice_names_bytes_of_images_and_texts(kind, record, proposed, tmp_path):
    """Bytes of images are images whatever their column is named; records of texts are read, too."""
    source = write(tmp_path, kind, [record, {**record, "target": "dog"}])
    refused = refusal(Reading, source)
    assert refused.options == {"columns": proposed}
    assert len(Reading(source, **refused.options).rows) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_each_of_many_records_has_its_places(kind, tmp_path):
    """Image and mask of each record are in the file, also where rows are made in blocks."""
    found = Reading(write(tmp_path, kind, [{"m": MASK}] * 1002), columns="image=pixels,mask=m")
    places = [json.loads(row.addresses) for row in found.rows]
    assert len(places) == 1002
    assert all(len(each) == 2 and None not in each for each in places)
